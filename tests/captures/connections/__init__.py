"""Recordings of connections that fail, and of healthy ones, each of a real broker or server and real clients."""
