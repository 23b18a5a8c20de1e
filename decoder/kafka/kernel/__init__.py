"""The same readers for many frames at once, compiled."""
