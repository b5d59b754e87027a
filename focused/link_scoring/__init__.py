"""The apprentice: link features, shipped priors and the online model (Chakrabarti et al. 2002)."""
