"""``wirelake open``: a capture or a lake that one walks through in a terminal."""
