"""Where groups stand: partitions over time, members and owners, rebalances, transactions, share groups."""
