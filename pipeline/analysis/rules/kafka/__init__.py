"""Rules about Kafka: groups, producers, clients, brokers and topics."""
