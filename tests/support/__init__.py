"""What tests use: each module is one helper. Test modules import from here, and never from each other."""
