"""Analyses of values without running a model."""
