"""Tests of pipeline.analysis.statements."""
