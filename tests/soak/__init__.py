"""The soak test: a worker under a steady load for a long time; see tests.soak.steady_load."""
