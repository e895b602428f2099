"""Graphs for Model Explorer: a model before conversion, in the integer form, and after.

`model-explorer x.tflite --extensions=tflq.explorer` opens them; `tflq inspect --format model-explorer` prints them as a
file that Model Explorer opens. Only `tflq.explorer.main` needs Model Explorer.
"""

from tflq.explorer.stages import Explored, explore

__all__ = ["Explored", "explore"]
