"""Samples that models run on, in any of the forms of docs/data.md: one reader for all calls and commands."""
