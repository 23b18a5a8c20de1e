"""How do landed frames become decoded rows? By the kernel or the plain reader, a batch at a time."""
