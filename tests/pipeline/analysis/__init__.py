"""Tests of the pure analysis."""
