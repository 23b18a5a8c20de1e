"""What kernels of all protocols share: where machine code is kept, and the writer of JSON text."""
