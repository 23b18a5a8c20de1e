"""What agent and job tell a monitoring system about themselves; nothing of what was captured."""
