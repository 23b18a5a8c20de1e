"""The same for many packets at once: blocks and lanes in arrays, compiled, for connections in good order."""
