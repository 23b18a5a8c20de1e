"""From the bytes of a message to its documents, and what they hold in short."""
