"""Tests of pipeline.analysis.rules.kafka.positions."""
