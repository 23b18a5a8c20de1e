"""Tests of pipeline.analysis.incidents: from findings to what a person reads."""
