"""Tests of the table of claims (pipeline.analysis.claims)."""
