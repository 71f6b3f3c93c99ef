"""A slow reference with sets and lists: normal form, shingles, hashes, signatures and similarity.

Unicode's properties come from unicodedataplus and Python, never from the project's tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import compress

import unicodedataplus

SPACELESS_SCRIPTS = {"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"}


@cache
def is_assigned(character: str) -> bool:
    age = unicodedataplus.age(character)
    if unicodedataplus.category(character) == "Cn" or age == "Unassigned":
        return False
    major, minor = age.split(".")
    return (int(major), int(minor)) <= (13, 0)


IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)
TRADE_MARKS = re.compile("[\u2120\u2122\U0001f16a-\U0001f16c]")
APOSTROPHES = set("\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\ua78b\ua78c")
OPTIONAL_SIGNS = re.compile(
    "[\u0640\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8"
    "\u06ea-\u06ed\u08d3-\u08e1\u08e3-\u08ff\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\ufb1e]"
)
PERSIAN = str.maketrans("ςı\u0649\u06cc\u06a9", "σi\u064a\u064a\u0643")


@cache
def kind(character: str) -> str:
    """Return the class of a character as one letter.

    D is a decimal digit, C a Cyrillic letter, L another letter, S a letter or number of a spaceless
    script, N another number, M a mark, l a spaceless letter, O what a minus may follow, else a space.
    """
    category = unicodedataplus.category(character)
    if category[0] == "M":
        return "X" if category == "Me" or OPTIONAL_SIGNS.match(character) else "M"
    if OPTIONAL_SIGNS.match(character):
        return "X"
    if category[0] not in "LN" or character in APOSTROPHES:
        return "O" if category[0] == "Z" or category in ("Cc", "Ps") else " "
    script = unicodedataplus.script(character)
    if category == "Nd":
        return "D"
    if script in SPACELESS_SCRIPTS:
        return "S" if category[0] == "L" else "s"
    if category[0] == "N":
        return "N"
    return "C" if script == "Cyrillic" else "L"


@cache
def counts_as_mark(character: str) -> bool:
    """Return whether the character is a mark, or becomes a mark by NFKC, or is tatweel."""
    return kind(character) in "MX" or character in "\uff9e\uff9f"


def cap_runs_of_marks(text: str) -> str:
    """Drop the marks past the 30th of each run."""
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if counts_as_mark(character) else 0
        if run <= 30:
            kept.append(character)
    return "".join(kept)


@cache
def simple_lower(character: str) -> str:
    lower = "i" if character == "\u0130" else character.lower()
    assert len(lower) == 1
    return lower if is_assigned(lower) else character


@cache
def gets_spaces(character: str) -> bool:
    """Return whether the character is a vulgar fraction, or a number in a circle or other sign."""
    if unicodedataplus.category(character) != "No":
        return False
    tag = unicodedataplus.decomposition(character).split(" ")[0]
    is_sign = "\u2776" <= character <= "\u2793" or "\u24eb" <= character <= "\u24ff"
    return is_sign or tag not in ("", "<super>", "<sub>")


@cache
def is_raised(character: str) -> bool:
    parts = unicodedataplus.decomposition(character).split(" ")
    return bool(unicodedataplus.category(character) == "No") and parts[0] == "<super>"


def is_lower(character: str) -> bool:
    return bool(unicodedataplus.category(character) == "Ll") and is_assigned(character)


def join_broken_words(text: str) -> str:
    joined, end = "", 0
    for match in re.finditer("[-\u2010\u00ad][ \t]*(\r\n?|\n)[ \t]*", text):
        first, last = match.span()
        if first > 0 and last < len(text) and is_lower(text[first - 1]) and is_lower(text[last]):
            joined, end = joined + text[end:first], last
    return joined + text[end:]


def prepared(text: str) -> str:
    """Return the text to which NFKC is applied."""
    text = join_broken_words(text)
    text = IGNORED.sub("", "".join(c if is_assigned(c) else " " for c in text))
    text = cap_runs_of_marks(TRADE_MARKS.sub(" ", text))
    text = "".join(f" {c} " if gets_spaces(c) else c for c in text)
    kinds = "".join("^" if is_raised(c) else "M" if counts_as_mark(c) else kind(c) for c in text)
    places = {match.end() for match in re.finditer("(D|([LCS]M*){2}[LCS])M*(?=\\^)", kinds)}
    return "".join(f" {c}" if i in places else c for i, c in enumerate(text))


def words(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", prepared(text))
    symbols = [c for c in text if unicodedataplus.category(c)[0] == "S"]
    text = "".join(map(simple_lower, text)).translate(PERSIAN)
    text = "".join(str(unicodedataplus.decimal(c)) if kind(c) == "D" else c for c in text)
    text = re.sub("i\u0307+", "i", "".join(c for c in text if kind(c) != "X"))
    kinds = "".join(map(kind, text))
    kept = [not left_out for left_out in _left_out_marks(text, kinds)]
    text, kinds = ("".join(compress(of, kept)) for of in (text, kinds))
    signs = "".join("+" if c in "+#" else "-" if c in "-\u2212" else " " for c in text)
    both = zip(kinds, signs, strict=True)
    kinds = "".join(k if k in "DCLSsNM" or s == " " else s for k, s in both)
    pattern = "(?<![^O])-[DCLN][DCLNM]*|[Ss]M*|[DCLN][DCLNM]*"
    found = []
    for match in re.finditer(pattern, _minus_only_before_digits(kinds, text)):
        start, end = match.span()
        after = re.compile("\\++").match(kinds, end)
        last = kinds[start:end].rstrip("M")[-1]
        if after and last in "CLS" and kinds[after.end() : after.end() + 1] not in set("DCLSsN"):
            end = after.end()
        word = text[start:end].replace("\u2212", "-").replace("ß", "ss")
        found.append(word)
    return found or symbols


def _minus_only_before_digits(kinds: str, text: str) -> str:
    """Return kinds with a space for each plus, and for each minus that no digit follows."""
    return re.sub("-(?!D)", " ", kinds).replace("+", " ")


def _left_out_marks(text: str, kinds: str) -> list[bool]:
    """Say of each character whether it is a mark after no letter or number, or a stress mark."""
    left_out: list[bool] = []
    last = before = " "  # the kinds of the last character that is no mark, and of the last kept one
    for character, its_kind in zip(text, kinds, strict=True):
        is_stress = before == "C" and character in "\u0300\u0301"
        left_out.append(its_kind == "M" and (last not in "DCLSsN" or is_stress))
        last = last if its_kind == "M" else its_kind
        before = before if left_out[-1] else its_kind
    return left_out


@lru_cache(10_000)
def normal_form(text: str) -> str:
    return " ".join(words(text))


def shingles(text: str, unit: str, n: int) -> list[str]:
    """Return the distinct shingles in order of first appearance."""
    return shingles_of_form(normal_form(text), unit, n)


def shingles_of_form(form: str, unit: str, n: int) -> list[str]:
    parts = form.split() if unit == "word" else list(without_spaces(form))
    glue = " " if unit == "word" else ""
    count = max(1, len(parts) - n + 1) if parts else 0
    return list(dict.fromkeys(glue.join(parts[i : i + n]) for i in range(count)))


def without_spaces(form: str) -> str:
    """Return a normal form without the spaces between two words of spaceless scripts."""
    joined = ""
    last = " "
    for word in form.split():
        glue = "" if kind(last) in "Ss" and kind(word[0]) in "Ss" else " "
        joined, last = joined + glue + word, word[0]
    return joined[1:]


def jaccard(left: Set[object], right: Set[object]) -> float:
    """Return the similarity of two sets; 0 if one is empty."""
    return len(left & right) / len(left | right) if left and right else 0.0


MASK32 = 2**32 - 1
State = tuple[int, int, int]


def similarity(left: str, right: str, unit: str = "word", n: int = 3) -> float:
    """Return the similarity of two texts."""
    return jaccard(set(shingles(left, unit, n)), set(shingles(right, unit, n)))


def signed(value: int, bits: int) -> int:
    """Return the low bits of an integer as a signed integer."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def rotate(x: int, bits: int) -> int:
    return (x << bits | x >> 32 - bits) & MASK32


def mix(a: int, b: int, c: int) -> State:
    """Mix the state of lookup3."""
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c & MASK32) ^ rotate(c, bits)
        c = c + b & MASK32
        a, b, c = b, c, a
    return a, b, c


def finish(a: int, b: int, c: int) -> int:
    """Return 64 bits of the state of lookup3, signed."""
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - rotate(b, bits) & MASK32
        a, b, c = b, c, a
    return signed(a << 32 | b, 64)


def initial_state(length: int, seed: int) -> State:
    a = b = c = 0x9E3779B9 + length + 3923095 & MASK32
    if seed:
        a, b, c = mix(a + (seed >> 32) & MASK32, b + seed & MASK32, c)
    return a, b, c


def text_hash(text: str, seed: int = 0) -> int:
    """Return hashtextextended(text, seed)."""
    data = text.encode()
    a, b, c = initial_state(len(data), seed)
    while len(data) >= 12:
        low, middle, high = (int.from_bytes(data[i : i + 4], "little") for i in (0, 4, 8))
        a, b, c = mix(a + low & MASK32, b + middle & MASK32, c + high & MASK32)
        data = data[12:]
    low, middle, high = (int.from_bytes(data[i : i + 4], "little") for i in (0, 4, 8))
    return finish(a + low & MASK32, b + middle & MASK32, c + (high << 8) & MASK32)


def integer_hash(value: int, seed: int) -> int:
    """Return hashint8extended(value, seed)."""
    high = value >> 32 if value >= 0 else ~(value >> 32)
    a, b, c = initial_state(4, seed)
    return finish(a + ((value ^ high) & MASK32) & MASK32, b, c)


def array_hash(values: Sequence[int], seed: int) -> int:
    """Return hash_array_extended(values, seed)."""
    total = 1
    for value in values:
        total = total * 31 + integer_hash(value, seed)
    return signed(total, 64)


def shingle_values(text: str, unit: str, n: int) -> list[int]:
    """Return the values of the distinct shingles, in order of first appearance."""
    return values_of_form(normal_form(text), unit, n)


def values_of_form(form: str, unit: str, n: int) -> list[int]:
    distinct = shingles_of_form(form, unit, n)
    if unit == "char":
        return [text_hash(shingle) for shingle in distinct]
    hash_of = {word: text_hash(word) for word in form.split()}
    hashes = [[hash_of[word] for word in shingle.split()] for shingle in distinct]
    return [values[0] if n == 1 else array_hash(values, 0) for values in hashes]


def base(seed: int) -> int:
    """Return the low 62 bits of the first number of splitmix64."""
    z = seed + 0x9E3779B97F4A7C15
    z = (z ^ (z % 2**64) >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return (z ^ z >> 31) & 2**62 - 1


def signature(values: Sequence[int], seed: int, t: int, every_round: bool = False) -> list[int]:
    """Return the signature of shingle values; every_round: run all rounds, even if no bin is empty."""
    bins: list[list[int]] = [[] for _ in range(t)]
    for r in range(t):
        if all(bins) and not every_round:
            break
        for x in values:
            h = integer_hash(x, base(seed) + r)
            bins[((h & MASK32) * t) >> 32].append((r << 32) + (h >> 32))
    for k, values_of_bin in enumerate(bins):
        if not values_of_bin:
            values_of_bin += [integer_hash(x, base(seed) + t + k) >> 32 for x in values]
    return [signed(min(values_of_bin), 16) for values_of_bin in bins]


def buckets(signature: Sequence[int], bands: int, rows: int) -> list[int]:
    """Return the bucket of each band."""
    return [signed(array_hash(signature[j * rows : (j + 1) * rows], j), 32) for j in range(bands)]


def needed_overlap(a: int, b: int, threshold: float) -> int:
    """Return the fewest shingles that sets of a and b shingles share if they reach the threshold.

    The result may be more than a or b; then no such sets reach it.
    """
    return next(o for o in range(1, a + b + 1) if o >= a + b - o or o / (a + b - o) >= threshold)


def is_candidate(shared: int, a: int, b: int, threshold: float) -> bool:
    """Say whether two documents of an exact corpus that share some rows may reach the threshold."""
    overlap = needed_overlap(a, b, threshold)
    return overlap <= min(a, b) and shared >= needed_rows(a, b, threshold)


def count_rows(size: int, threshold: float) -> int:
    """Return the band rows of a document of an exact corpus."""
    overlap = next(o for o in range(size + 1) if o >= size or o / size >= threshold)
    return min(size, size - overlap + 3)


def needed_rows(a: int, b: int, threshold: float) -> int:
    """Return how many rows documents of a and b shingles share in an exact corpus if they are similar.

    The shingles of the larger document that have no row may all be shared as well.
    """
    larger = max(a, b)
    return needed_overlap(a, b, threshold) - (larger - count_rows(larger, threshold))


def exact_signature(
    values: Sequence[int], threshold: float, classes: Mapping[int, int] | None = None
) -> list[int]:
    """Return the signature of shingle values in an exact corpus; classes: those of common values."""
    in_order = sorted(values, key=lambda value: ((classes or {}).get(value, 0), value))
    return [signed(x, 32) for x in in_order[: count_rows(len(values), threshold)]]
