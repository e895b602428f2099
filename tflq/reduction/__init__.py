"""Reducing a model that fails to the smallest part of it that still does: delta debugging over its operators."""

from tflq.reduction.predicates import Conversion, Predicate
from tflq.reduction.reduce import Reduction, reduce

__all__ = ["Conversion", "Predicate", "Reduction", "reduce"]
