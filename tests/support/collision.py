"""Two different words with the same hashtextextended.

lookup3 takes 12 bytes at a time: it adds them to its state and mixes the state. The second halves of the
two words cancel the difference that their first halves made in the state.
"""

from __future__ import annotations

FIRST = "3supc5uhsrmmdzzyk099knq9"
SECOND = "udk2ihg116w39439zzbxz99d"
