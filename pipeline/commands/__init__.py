"""The commands of the ``wirelake`` program, one module each."""
