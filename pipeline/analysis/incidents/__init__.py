"""Incidents: which findings are one trouble, its source, who is affected, and what must be done first."""
