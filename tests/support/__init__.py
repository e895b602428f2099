"""What tests share: models made by hand, runs in the interpreter, comparisons with peers and with real values."""
