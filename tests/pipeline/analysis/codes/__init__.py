"""Tests of the table of error codes."""
