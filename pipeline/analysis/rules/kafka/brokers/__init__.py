"""Rules about brokers: whether they answer, and who leads."""
