"""The same readers for many messages at once, compiled."""
