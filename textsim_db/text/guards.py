"""Guards: what two texts must share, besides being similar, to be merged.

A guard of a document is the hash of the lines that guard_lines() returns. SQL computes the same in
24_guards.sql; a test compares its list of negations with this one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from textsim_db.settings.corpus_settings import Guard
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.nfkc import zero_bytes
from textsim_db.text.numba_compiler import (
    ByteArray,
    Int64Array,
    inlined_kernel,
    kernel,
    load64,
    longest,
)
from textsim_db.text.split_ascii import digits
from textsim_db.text.tokens import Tokens
from textsim_db.text.utf8 import WordTable, copy_span, number_of_span, word_table

# A corpus does not know the languages of its texts, so all words count in each text. A merge that a
# guard refuses costs a row, and a wrong merge costs a text. So a word counts although it means something
# else in another language, such as "no" in Portuguese, "sin" in Swedish, and "ne" in Italian. A word is
# left out if most texts that have it negate nothing: "n" of French; "en" and "et" of Finnish; "mai" and
# "né" of Italian; "ni" of Spanish; "tak" of Indonesian; 别 and 否 of Chinese. Prefixes and endings that
# negate, as in Czech and Turkish, are seen in a few frequent words only.
# The lines are English; German and Dutch; Scandinavian; French; Spanish; Portuguese; Italian; Romanian;
# Polish; Czech and Slovak; Croatian, Serbian and Slovene; Russian; Ukrainian and Bulgarian; Greek;
# Turkish; Finnish; Hungarian; Indonesian; Vietnamese; Arabic; Persian and Urdu; Hebrew; Hindi and
# Bengali; Korean; Chinese, Japanese and Lao.
_WORDS = """
not no nope never none nor neither nobody nothing nowhere non without cannot cant dont doesnt didnt
isnt arent wasnt werent wont wouldnt shouldnt couldnt hasnt havent hadnt mustnt neednt aint
nicht nein kein keine keinen keinem keiner keines nie niemals nichts niemand nirgends ohne weder
niet geen nooit niets niks niemand nergens zonder
inte nej ingen inget inga aldrig utan ikke ikkje nei ej ei ingenting aldri uten uden
ne pas jamais rien aucun aucune sans guère
nunca nada nadie ningún ninguno ninguna sin jamás tampoco
não nem sem nenhum nenhuma ninguém jamais
senza nessun nessuno nessuna niente nulla neppure nemmeno neanche
nu fără nici niciun nicio nimic nimeni niciodată
nie bez nigdy żaden żadna żadne żadnych nikt nic
není nejsou nejsem nebyl nebyla nebylo nemá nemám nikdy žádný žádná žádné nikdo nič žiadny
nije nisu nisam nema nemaju nikada nikad ništa nitko niko neće
не нет нету ни никогда без ничего никто нельзя никаких никакой
ні немає ніколи нема нічого ніхто жодного няма никога нищо није нису никада ништа
δεν δε μη μην χωρίσ όχι ποτέ κανένασ καμία κανένα τίποτα ούτε
değil yok hayir hiç asla olmadan
emme ette eivät älä älkää ilman
nem ne nincs nincsenek soha sehol sohasem nélkül sem
tidak bukan tanpa jangan belum bukanlah tidaklah
không chẳng chưa đừng chớ
لا ليس ليست ليسوا لم لن غير بدون بلا دون
نه نيست نيستند نبود ندارد ندارند نشد نشده نكرد نكرده نبايد نميشود نميتوان نميكند هيچ نہيں نہ مت بغير
לא אין אינו אינה אינם בלי ללא
नहीं नही मत बिना ना না নয় নেই নাই
안 못 아니 아닌 아니다 아니라 아닙니다 아니에요 아니요
못하다 못하는 못한 못한다 못할 못해 못했다 못합니다 못했습니다 마세요 마십시오
不 没 沒 无 無 非 未 勿
ບໍ່
"""
_BEFORE_T = """
ain aren can couldn daren didn doesn don hadn hasn haven isn mayn mightn mustn needn oughtn shan shouldn
wasn weren won wouldn
"""
NEGATIONS = frozenset(_WORDS.split())
"""Words of negation, as they stand in normal forms."""
NEGATION_PHRASES = frozenset(
    [f"{word} t" for word in _BEFORE_T.split()]
    + ["な い", "な く", "な か っ", "ま せ ん", "ず に", "せ ず", "ไ ม่"]
)
"""Negations of several words: n't, and those of scripts in which each character is a word."""
NEGATION_PARTS = "않없"
"""Characters that negate the Korean word they stand in."""
_LONGEST_PHRASE = 3
_WORDS_OF_PHRASES = frozenset(" ".join(NEGATION_PHRASES).split())


def guard_lines(
    words: Sequence[str], guards: Sequence[str], guard_words: Collection[str]
) -> list[str]:
    """Return what a guard looks at: a line "KIND ELEMENT" for each element, in order.

    words: those of a stored normal form. The elements of numbers are the distinct runs of words with
    digits, the element of negations is how many there are, and the elements of words are those that
    occur.
    """
    found: dict[str, set[str]] = {}
    if Guard.NUMBERS in guards:
        found["numbers"] = set(_runs_of_numbers(words))
    if Guard.NEGATIONS in guards:
        count = sum(1 for _ in _negations(words))
        found["negations"] = {str(count)} if count else set()
    if Guard.WORDS in guards:
        found["words"] = {word for word in words if word in guard_words}
    return [f"{kind} {element}" for kind, elements in found.items() for element in sorted(elements)]


def elements_apart(
    one: Sequence[str],
    other: Sequence[str],
    guards: Sequence[str],
    guard_words: Collection[str],
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the guards that differ between the words of two documents, in order.

    Each has the elements of the first document only, and those of the second only.
    """
    apart = {}
    for guard in guards:
        lines = [guard_lines(words, [guard], guard_words) for words in (one, other)]
        elements = [[line.removeprefix(f"{guard} ") for line in each] for each in lines]
        if elements[0] != elements[1]:
            a, b = elements
            apart[guard] = ([x for x in a if x not in b], [x for x in b if x not in a])
    return apart


def guards_of(
    tokens: Tokens, guards: tuple[str, ...], guard_words: tuple[str, ...]
) -> Int64Array | None:
    """Return the guard of each document: (documents,); None if there are no guards."""
    if not guards:
        return None
    negates = Guard.NEGATIONS in guards
    listed = _listed(negates, guard_words if Guard.WORDS in guards else ())
    return _guards_of(tokens, listed, Guard.NUMBERS in guards, negates)


def is_counted(word: str, guards: Collection[str], guard_words: Collection[str]) -> bool:
    """Say whether a guard counts a word, so that it is never left out as a stop word."""
    return (
        (Guard.NUMBERS in guards and _has_digit(word))
        or (Guard.NEGATIONS in guards and (_is_negation(word) or word in _WORDS_OF_PHRASES))
        or (Guard.WORDS in guards and word in guard_words)
    )


def _runs_of_numbers(words: Sequence[str]) -> Iterator[str]:
    run: list[str] = []
    for word in [*words, ""]:
        if _has_digit(word):
            run.append(word)
        elif run:
            yield " ".join(run)
            run = []


def _negations(words: Sequence[str]) -> Iterator[int]:
    """Yield the place of each negation; of those that overlap the first counts, and the longest."""
    place = 0
    while place < len(words):
        for length in range(_LONGEST_PHRASE, 0, -1):
            negation = " ".join(words[place : place + length])
            if negation in NEGATION_PHRASES or (length == 1 and _is_negation(negation)):
                yield place
                break
        place += length


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or any(part in word for part in NEGATION_PARTS)


def _has_digit(word: str) -> bool:
    return any("0" <= character <= "9" for character in word)


class _Listed(NamedTuple):
    """The words and phrases that guards look for."""

    table: WordTable
    """All of them, and the first words of the phrases."""
    roles: ByteArray
    """The roles of each: _NEGATES, _BEGINS a phrase or _IS_GUARDED, or several of them."""


_NEGATES, _BEGINS, _IS_GUARDED = 1, 2, 4


@lru_cache(maxsize=128)
def _listed(negates: bool, guard_words: tuple[str, ...]) -> _Listed:
    roles = dict.fromkeys(guard_words, _IS_GUARDED)
    if negates:
        for negation in NEGATIONS | NEGATION_PHRASES:
            roles[negation] = roles.get(negation, 0) | _NEGATES
        for phrase in NEGATION_PHRASES:
            first = phrase.split()[0]
            roles[first] = roles.get(first, 0) | _BEGINS
    table = word_table([word.encode() for word in roles])
    return _Listed(table, np.array([*roles.values()], np.uint8))


class _Spans(NamedTuple):
    """Spans of a normal form, and space to sort them."""

    starts: Int64Array
    """The first byte of each."""
    ends: Int64Array
    """The byte after each."""
    order: Int64Array
    """Their numbers, in order of their bytes."""
    merged: Int64Array
    """The order while it is merged."""


_NUMBERS, _NEGATIONS, _GUARD_WORDS = (
    tuple(b"numbers "),
    tuple(b"negations "),
    tuple(b"words "),
)
_NEWLINE = ord("\n")
_ZERO = ord("0")
_HANGUL, _PARTS = (
    np.uint64(0x0101010101010101 * NEGATION_PARTS.encode()[0]),
    tuple(tuple(part.encode()) for part in NEGATION_PARTS),
)
_FEW = 16
"""Up to this number, spans are sorted by insertion."""
_ROOM = 64
"""Bytes for the words and numbers of a line."""


@kernel
def _guards_of(
    tokens: Tokens, listed: _Listed, has_numbers: bool, has_negations: bool
) -> Int64Array:
    documents = len(tokens.word_offsets) - 1
    guards = np.empty(documents, np.int64)
    most = longest(tokens.word_offsets)
    spans = _Spans(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    lines = np.empty(1024, np.uint8)
    for i in range(documents):
        size = 0
        has_digit, has_hangul = _traits(tokens, i)
        if has_numbers and has_digit:
            count = _find_numbers(tokens, i, spans)
            lines = _with_space(lines, size, spans, count)
            size = _write(tokens.normal, spans, count, _NUMBERS, lines, size)
        if len(listed.roles):
            parts = has_hangul and has_negations
            negations, count = _find_listed(tokens, i, listed, parts, spans)
            if negations:
                lines = _with_space(lines, size, spans, 0)
                size = _write_count(negations, lines, size)
            if count:
                lines = _with_space(lines, size, spans, count)
                size = _write(tokens.normal, spans, count, _GUARD_WORDS, lines, size)
        guards[i] = np.int64(hash_span(lines, 0, max(size - 1, 0)))
    return guards


@inlined_kernel
def _traits(tokens: Tokens, i: int) -> tuple[bool, bool]:
    """Say whether a document may have a digit, and a part of a word that negates."""
    found, hangul = np.uint64(0), np.uint64(0)
    for k in range(tokens.normal_offsets[i], tokens.normal_offsets[i + 1], 8):
        eight = load64(tokens.normal, k)
        found |= digits(eight)
        hangul |= zero_bytes(eight ^ _HANGUL)
    return found != 0, hangul != 0


@inlined_kernel
def _find_numbers(tokens: Tokens, i: int, spans: _Spans) -> int:
    """Find the runs of words with digits; return how many."""
    count = 0
    is_run = False
    for k in range(tokens.word_offsets[i], tokens.word_offsets[i + 1]):
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        if not _has_digit_in(tokens.normal, start, end):
            is_run = False
            continue
        if not is_run:
            spans.starts[count] = start
            count += 1
        spans.ends[count - 1] = end
        is_run = True
    return count


@inlined_kernel
def _has_digit_in(data: ByteArray, start: int, end: int) -> bool:
    for k in range(start, end, 8):
        found = digits(load64(data, k))
        if end - k < 8:
            found &= (np.uint64(1) << np.uint64(8 * (end - k))) - np.uint64(1)
        if found:
            return True
    return False


@inlined_kernel
def _find_listed(
    tokens: Tokens, i: int, listed: _Listed, has_parts: bool, spans: _Spans
) -> tuple[int, int]:
    """Return how many negations a document has, and how many of its words are guarded; find these."""
    negations = count = 0
    until, last = tokens.word_offsets[i], tokens.word_offsets[i + 1]
    for k in range(until, last):
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        word_hash = np.uint64(tokens.hashes[k])
        number = number_of_span(listed.table, tokens.normal, start, end, word_hash)
        role = np.int64(listed.roles[number]) if number >= 0 else 0
        if role & _IS_GUARDED:
            spans.starts[count], spans.ends[count] = start, end
            count += 1
        if k >= until:
            length = 0
            if role & _BEGINS:
                length = _length_of_phrase(tokens, k, last, listed)
            if not length and (
                role & _NEGATES or (has_parts and _has_part(tokens.normal, start, end))
            ):
                length = 1
            negations += length > 0
            until = k + length
    return negations, count


@inlined_kernel
def _length_of_phrase(tokens: Tokens, k: int, last: int, listed: _Listed) -> int:
    """Return the number of words of the longest negation of several words from a word on, or 0."""
    for length in range(min(_LONGEST_PHRASE, last - k), 1, -1):
        start, end = int(tokens.starts[k]), int(tokens.ends[k + length - 1])
        phrase_hash = hash_span(tokens.normal, start, end)
        number = number_of_span(listed.table, tokens.normal, start, end, phrase_hash)
        if number >= 0 and listed.roles[number] & _NEGATES:
            return length
    return 0


@inlined_kernel
def _has_part(data: ByteArray, start: int, end: int) -> bool:
    for k in range(start, end - 2):
        for part in _PARTS:
            if data[k] == part[0] and data[k + 1] == part[1] and data[k + 2] == part[2]:
                return True
    return False


@kernel
def _with_space(lines: ByteArray, size: int, spans: _Spans, count: int) -> ByteArray:
    """Return lines with space for a line of each of the first spans, and one more."""
    needed = size + _ROOM + PADDING
    for i in range(count):
        needed += spans.ends[i] - spans.starts[i] + _ROOM
    if needed <= len(lines):
        return lines
    longer = np.empty(2 * needed, np.uint8)
    copy_span(lines, 0, size, longer, 0)
    return longer


@inlined_kernel
def _write_count(number: int, lines: ByteArray, size: int) -> int:
    """Write how many negations there are; return the bytes that are written."""
    for byte in _NEGATIONS:
        lines[size] = byte
        size += 1
    power = 1
    while power * 10 <= number:
        power *= 10
    while power:
        lines[size] = _ZERO + number // power % 10
        size += 1
        power //= 10
    lines[size] = _NEWLINE
    return size + 1


@inlined_kernel
def _write(
    data: ByteArray,
    spans: _Spans,
    count: int,
    kind: tuple[int, ...],
    lines: ByteArray,
    size: int,
) -> int:
    """Write a line for each different span, in order of their bytes; return the bytes written."""
    _sort(data, spans, count)
    for i in range(count):
        start, end = spans.starts[spans.order[i]], spans.ends[spans.order[i]]
        if i > 0 and _compare(data, spans, spans.order[i - 1], spans.order[i]) == 0:
            continue
        for byte in kind:
            lines[size] = byte
            size += 1
        size = copy_span(data, start, end, lines, size)
        lines[size] = _NEWLINE
        size += 1
    return size


@kernel
def _sort(data: ByteArray, spans: _Spans, count: int) -> None:
    """Sort the first spans by their bytes: few at a time by insertion, and then by merging."""
    order, merged = spans.order, spans.merged
    for first in range(0, count, _FEW):
        for i in range(first, min(first + _FEW, count)):
            at = i
            while at > first and _compare(data, spans, order[at - 1], i) > 0:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = _FEW
    while width < count:
        for first in range(0, count, 2 * width):
            middle, end = min(first + width, count), min(first + 2 * width, count)
            a, b = first, middle
            for at in range(first, end):
                if b == end or (a < middle and _compare(data, spans, order[a], order[b]) <= 0):
                    merged[at] = order[a]
                    a += 1
                else:
                    merged[at] = order[b]
                    b += 1
        for at in range(count):
            order[at] = merged[at]
        width *= 2


@inlined_kernel
def _compare(data: ByteArray, spans: _Spans, a: int, b: int) -> int:
    """Return a number below, at or above 0, as the bytes of a are before, at or after those of b."""
    start, other = spans.starts[a], spans.starts[b]
    length, other_length = spans.ends[a] - start, spans.ends[b] - other
    for k in range(min(length, other_length)):
        if data[start + k] != data[other + k]:
            return int(np.int64(data[start + k]) - np.int64(data[other + k]))
    return int(length - other_length)
