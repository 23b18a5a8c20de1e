"""Kafka: framing, pairing, schemas, messages, records, redaction. The model for every protocol folder."""
