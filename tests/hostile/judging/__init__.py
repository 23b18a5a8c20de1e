"""The campaign of bodies that are cut, mutated or are: how they are made, and all that reads them."""
