"""Rules about rebalances: storms of them, and members that a group waits for."""
