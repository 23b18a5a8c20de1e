"""What each error code of Kafka and MongoDB means, who can act, and what to do: one table for all rules."""
