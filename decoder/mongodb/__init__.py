"""MongoDB: framing, pairing, messages, documents, redaction. A sibling of decoder.kafka."""
