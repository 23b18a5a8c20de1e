"""What do exchanges say? A row for each statement."""
