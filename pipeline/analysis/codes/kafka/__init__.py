"""What each error code of Kafka means."""
