"""Rules about share groups (KIP-932): records that come back, and groups that acknowledge nothing."""
