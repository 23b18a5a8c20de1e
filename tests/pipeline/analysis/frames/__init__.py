"""Tests of pipeline.analysis.frames."""
