"""Connections that are copies of others: the same packets seen by two agents, or behind address translation."""
