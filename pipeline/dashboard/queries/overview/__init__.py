"""What is wrong and how well the wire was seen: incidents, findings, their proofs and trends, health, names."""
