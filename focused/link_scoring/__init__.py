"""Link scoring: the apprentice predicts how relevant a link's target will be.

"Apprentice" is the word of Chakrabarti, Punera, Subramanyam, WWW 2002. It computes features
of a link, weighs them with a linear model fitted on recorded webs (the link prior), and
learns online from the pages that its links led to.
"""
