"""Hostile inputs for the kernels, compiled with bounds checking; see tests.fuzz.run."""
