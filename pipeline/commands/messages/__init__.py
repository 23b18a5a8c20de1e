"""Messages of a capture, one by one: ``decode`` and ``explain``."""
