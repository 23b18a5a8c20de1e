"""The bytes that each side of a connection sent: segments in order, each byte once, what is missing reported."""
