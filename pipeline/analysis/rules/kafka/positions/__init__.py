"""Rules about where groups read: from one offset forever, on without a commit, or not at all."""
