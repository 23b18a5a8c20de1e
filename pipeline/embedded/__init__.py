"""The way from a capture to findings and tables in one process, without a JVM."""
