"""``wirelake top``: what a terminal shows while traffic continues."""
