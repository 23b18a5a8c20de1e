"""The frames that the bytes of a connection hold, and which response answers which request."""
