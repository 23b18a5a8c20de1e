"""Tests of the shapes of rule ``connection_failed``."""
