"""Data quality: what must hold for every table, and how it is checked and recorded."""
