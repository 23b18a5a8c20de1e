"""What the pipeline should tell of Redis."""
