"""Integers of one scale as those of another."""
