"""The campaign of bodies that are cut, mutated or lie: how they are made, and all that reads them."""
