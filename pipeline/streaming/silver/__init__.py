"""What do frames say? Requests with their responses, and the statements of each."""
