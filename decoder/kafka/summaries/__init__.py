"""What a Kafka message states, in a line for people."""
