"""Passes over the IR: the contract, the pipeline and the passes that any stage can use."""
