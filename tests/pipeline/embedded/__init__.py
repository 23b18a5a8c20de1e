"""Tests of pipeline.embedded: a capture to findings and tables in one process."""
