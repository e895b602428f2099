"""TOSA 1.0: what a device takes, what makes a file valid, the way there from the integer form and the way back."""
