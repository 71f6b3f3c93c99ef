"""How many bytes a document takes on disk, by the layout of the pages of PostgreSQL."""

from __future__ import annotations

from textsim_db.settings.choose_bands import expected_fingerprints

_PAGE_BYTES = 8168  # bytes of a page of 8 kB without its header
_LONGEST_ROW = 4080  # bytes; the words of a longer row are stored out of line
_PAGE_FILL = 0.9  # how full the server packs the pages of a B-tree
_FINGERPRINT_FILL = 0.95  # how full the pages of the index on fingerprints are made
_KEY_BYTES = 12  # bytes of an average key
WORD_ARRAY, WORD_BYTES = 24, 4  # bytes of an array of word ids, and of each id
_CHARACTERS = 6  # characters of an average word, with the space after it


def count_fingerprints(words: float, passages: int | None, unit: str = "word") -> int:
    if passages is None:
        return 0
    return round(expected_fingerprints(words * (1 if unit == "word" else _CHARACTERS), passages))


def storage(
    text_bytes: float, signature_bytes: float, band_rows: float, fingerprints: float = 0
) -> float:
    """Return the bytes of a document, with its index entries and its share of unused space.

    text_bytes: those of the word ids, or of the normal form in a corpus of characters.

    The layout of a page is described in PostgreSQL's documentation, "Database Physical Storage".
    """
    row = 24 + 4 + 4 + 1 + _KEY_BYTES + 3 + text_bytes + (24 + signature_bytes)
    if fingerprints:
        row += 24 + 4 * fingerprints
    row = _aligned(row) + 4
    # A page holds whole rows only, so on average the space of half a row stays unused.
    document = _PAGE_BYTES / max(_PAGE_BYTES / row - 0.5, 1) if row <= _LONGEST_ROW else row + 200
    by_id, by_key = 16 + 4, _aligned(8 + 1 + _KEY_BYTES) + 4
    # Band rows and fingerprints are two integers with a B-tree on both.
    heap, entry = 32 + 4, 16 + 4
    rows = band_rows * (heap + entry / _PAGE_FILL)
    rows += fingerprints * (heap + entry / _FINGERPRINT_FILL)
    return document + (by_id + by_key) / _PAGE_FILL + rows


def _aligned(size: float) -> float:
    return -(-size // 8) * 8
