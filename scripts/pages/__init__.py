"""Pages that scripts make, a module each. Those of the site alone are not in git."""
