"""What of a frame may land: no credentials, and of records what the payload policy allows."""
