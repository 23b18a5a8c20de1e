"""What one exchange states about offsets, groups, transactions and fetch sessions."""
