"""What exchanges state, a row for each statement."""
