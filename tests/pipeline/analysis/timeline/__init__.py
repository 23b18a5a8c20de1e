"""Tests of pipeline.analysis.timeline."""
