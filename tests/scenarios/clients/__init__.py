"""Scenarios of client libraries of other languages than Python, each healthy, and sick in a way of its own."""
