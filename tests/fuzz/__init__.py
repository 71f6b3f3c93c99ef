"""Hostile inputs for the kernels, run with bounds checking on; see run."""
