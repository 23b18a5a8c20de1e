"""Which bytes did each side of a connection send? Segments in order, each byte once, what is missing reported."""
