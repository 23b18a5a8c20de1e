"""Tests of pipeline.analysis.rules: each rule where it must fire and where it must not."""
