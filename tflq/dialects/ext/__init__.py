"""The numerics that TFLite has and TOSA lacks. Each class says exactly what it computes."""
