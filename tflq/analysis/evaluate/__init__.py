"""Numpy evaluator: what each op computes on arrays. For folding, tables, known sizes, tests."""
