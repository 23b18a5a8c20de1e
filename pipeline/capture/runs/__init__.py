"""From a capture to the landing zone: the agent, and what feeds it: files, pipes, a ring, an interface."""
