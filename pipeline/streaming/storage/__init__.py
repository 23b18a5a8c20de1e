"""Where rows go: Delta tables, what is written once, checkpoints, and the lock of a lake."""
