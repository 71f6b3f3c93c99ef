"""Helpers of the tests, one idea a module. Test modules import them, and never each other."""
