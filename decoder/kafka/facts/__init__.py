"""What does one exchange say of offsets, groups, transactions and fetch sessions?"""
