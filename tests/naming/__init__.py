"""Checks that things have the field's names."""
