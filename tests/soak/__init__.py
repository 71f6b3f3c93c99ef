"""A worker under a steady load for a long time; see run."""
