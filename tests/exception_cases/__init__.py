"""Models of all cases that docs/exceptions.md lists: `CASES`, of which `scripts/make_docs.py` makes the page."""

from exception_cases import elementwise, misread, products, samples, state
from exception_cases.case import CASES, Case

__all__ = ["CASES", "Case", "elementwise", "misread", "products", "samples", "state"]
