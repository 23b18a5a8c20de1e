"""Connections that fail: who cannot connect, is thrown out, is sent elsewhere, or is forgotten on the way."""
