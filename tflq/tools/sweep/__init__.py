"""Sweeps: many models under many targets, each converted and verified in a process of its own, and what changed.

sources → jobs → executor (a warm server forks a process for each) → results.jsonl → summary, page, comparison
"""
