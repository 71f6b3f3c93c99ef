"""base: what every stage uses: compiled kernels, streams, progress. Knows no texts."""
