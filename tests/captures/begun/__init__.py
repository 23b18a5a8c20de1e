"""Incidents that are already under way when the capture begins: how each is judged, and why some cannot be known."""
