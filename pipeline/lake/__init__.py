"""Tables of the lake: reading and writing them, their layout, and where they are."""
