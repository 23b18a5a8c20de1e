"""What happens to what is written? Batches, sequences, transactions."""
