"""Pages that `scripts/make_docs.py` and `make site` make, a module each."""
