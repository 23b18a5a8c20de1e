"""Rules about where groups read: from one offset for ever, on without a commit, or not at all."""
