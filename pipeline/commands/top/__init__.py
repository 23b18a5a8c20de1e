"""``wirelake top``: what a terminal shows while traffic goes on."""
