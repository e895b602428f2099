"""Channels of activations brought to like ranges, in the float network."""
