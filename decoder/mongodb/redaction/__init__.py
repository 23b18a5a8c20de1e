"""What of a message may land: no credentials, and of documents what the payload policy allows."""
