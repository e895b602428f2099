"""A package, so that it is not another project's `tests` that tests import where one is installed."""
