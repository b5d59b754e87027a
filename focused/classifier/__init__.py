"""The topic classifier: training, calibration, model files and model versions.

Sample pages train a linear classifier; calibration turns its scores into probabilities.
"""
