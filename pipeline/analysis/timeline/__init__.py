"""Where each partition, and each group that reads it, is over time."""
