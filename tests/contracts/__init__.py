"""What every implementation of a seam must keep to, as tests: any may be put to them."""
