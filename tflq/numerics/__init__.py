"""Pure functions on numbers: where bit-exactness lives. No IR here."""
