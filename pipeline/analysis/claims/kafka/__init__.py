"""Claims about Kafka, and the evidence that each rests on."""
