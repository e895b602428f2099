"""The smallest part of a model that fails, and the pass that changed a result."""
