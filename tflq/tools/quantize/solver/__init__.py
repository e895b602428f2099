"""Where a computation is carried out on integers: the solver's modes, and how they find it."""
