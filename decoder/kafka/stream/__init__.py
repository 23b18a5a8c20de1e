"""Where frames begin in a stream of bytes, and which response answers which request."""
