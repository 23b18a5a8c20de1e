"""Incidents: which findings are one trouble, who causes it, whom it hurts, and what must be done first."""
