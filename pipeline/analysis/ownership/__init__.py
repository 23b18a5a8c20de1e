"""Who holds what: partitions given to members of groups, transactions of producers, partitions in fetch sessions."""
