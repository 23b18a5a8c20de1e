"""What agent and job report to a monitoring system about themselves; nothing of what was captured."""
