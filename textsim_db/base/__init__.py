"""base: what every stage uses: compiled kernels, streams, progress, free memory. Knows no texts."""
