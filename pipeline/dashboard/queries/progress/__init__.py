"""Where groups are: partitions over time, members and owners, rebalances, transactions, share groups."""
