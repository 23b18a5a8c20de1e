"""Where each partition, and each group that reads it, stands over time."""
