"""Where messages begin in a stream of bytes, and which reply answers which request."""
