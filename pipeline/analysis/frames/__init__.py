"""Decodes landed frames, by the kernel or the plain reader, a batch at a time."""
