"""base: what every stage uses: compiled kernels, streams, memory, progress. Knows no texts."""
