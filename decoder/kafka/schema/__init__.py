"""Kafka's message schemas: the table, how it is read, and how it is built."""
