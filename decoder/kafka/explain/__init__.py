"""What people want to know of one Kafka message: its fields, what it may be, and what would fix it."""
