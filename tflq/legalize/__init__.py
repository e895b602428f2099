"""Legalization: quantized TFLite operators → the integer form."""
