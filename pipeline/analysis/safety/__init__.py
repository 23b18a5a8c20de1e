"""What keeps one step of the analysis from ending, or delaying, the others: containment of failures, bounds of work."""
