"""Sums, products, quotients, extremes and powers."""
