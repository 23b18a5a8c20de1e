"""Tests of pipeline.streaming.findings: each rule where it must fire and where it must not."""
