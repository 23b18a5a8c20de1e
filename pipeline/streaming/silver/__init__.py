"""What do frames state? Requests with their responses, and the statements of each."""
