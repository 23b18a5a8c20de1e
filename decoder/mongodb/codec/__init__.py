"""From the bytes of a message to its documents, and what they say in short."""
