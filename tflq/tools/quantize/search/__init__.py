"""Search for the operators that compute with more bits, or with floats."""
