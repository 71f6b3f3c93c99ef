"""Guards: what two texts must share, besides being similar, to be merged.

A guard of a document is the hash of the lines that guard_lines() returns. SQL computes the same in
24_guards.sql; a test compares its list of negations with this one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from textsim_db.text.hashing import hash_texts
from textsim_db.text.numba_compiler import Int64Array
from textsim_db.text.tokens import Tokens

GUARDS = ("numbers", "negations", "words")
"""The kinds of guards, in the order in which a corpus stores them."""

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
    if "numbers" in guards:
        found["numbers"] = set(_runs_of_numbers(words))
    if "negations" in guards:
        count = sum(1 for _ in _negations(words))
        found["negations"] = {str(count)} if count else set()
    if "words" in guards:
        found["words"] = {word for word in words if word in guard_words}
    return [f"{kind} {element}" for kind, elements in found.items() for element in sorted(elements)]


def differing(
    one: Sequence[str],
    other: Sequence[str],
    guards: Sequence[str],
    guard_words: Collection[str],
) -> list[str]:
    """Return the guards that differ between the words of two documents, in order."""
    return [
        guard
        for guard in GUARDS
        if guard in guards
        and guard_lines(one, [guard], guard_words) != guard_lines(other, [guard], guard_words)
    ]


def guards_of(
    tokens: Tokens, guards: tuple[str, ...], guard_words: tuple[str, ...]
) -> Int64Array | None:
    """Return the guard of each document: (documents,); None if there are no guards."""
    if not guards:
        return None
    forms = [form.split() for form in tokens.forms()]
    lines = ["\n".join(guard_lines(words, guards, guard_words)) for words in forms]
    return np.array(hash_texts(lines), np.int64)


def is_counted(word: str, guards: Collection[str], guard_words: Collection[str]) -> bool:
    """Say whether a guard counts a word, so that it is never left out as a stop word."""
    return (
        ("numbers" in guards and _has_digit(word))
        or ("negations" in guards and (_is_negation(word) or word in _WORDS_OF_PHRASES))
        or ("words" in guards and word in guard_words)
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
