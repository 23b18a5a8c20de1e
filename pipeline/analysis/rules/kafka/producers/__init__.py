"""Rules about what is written: batches, sequences, transactions."""
