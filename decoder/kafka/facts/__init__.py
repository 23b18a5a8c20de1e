"""What does one exchange state about offsets, groups, transactions and fetch sessions?"""
