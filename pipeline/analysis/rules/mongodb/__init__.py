"""Rules about MongoDB."""
