"""C99 as a result: TOSA's operators as functions that a compiler and nothing else is needed for."""
