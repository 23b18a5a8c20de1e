"""What do exchanges state? A row for each statement."""
