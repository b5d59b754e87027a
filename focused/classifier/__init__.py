"""What is on topic, and what will be.

Directory samples train the topic classifier; the classifier judges fetched
pages; the apprentice predicts, from what a page shows of its links, how
relevant their targets will be. Learners never change their input, and what
leaves this package as relevance or score is a calibrated probability.
Nothing here knows the frontier.
"""
