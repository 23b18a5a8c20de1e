"""What frames state: requests with their responses, and the statements of each."""
