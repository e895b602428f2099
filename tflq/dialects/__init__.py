"""Declarations of ops: a class per operator, the traits that they share, and the forms that a module can be in."""
