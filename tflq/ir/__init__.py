"""IR: types, values, ops, functions, module."""
