"""Integers and sums of one scale as those of another."""
