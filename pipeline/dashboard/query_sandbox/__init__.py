"""Queries of others, answered in processes of their own: bounded in memory, time and disk."""
