"""Tests of pipeline.streaming."""
