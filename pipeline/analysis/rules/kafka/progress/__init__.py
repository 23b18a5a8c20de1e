"""Rules about the progress of a group: its commits, fetches and the ends of logs over time."""
