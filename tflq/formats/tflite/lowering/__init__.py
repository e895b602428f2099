"""Selection: the integer form → TFLite builtins on plain integer tensors.

`engine.select` does it. What is not imported here is not needed for TOSA, which takes its tables, bounds and costs from
this folder, but none of the lowerings.
"""
