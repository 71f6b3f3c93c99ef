"""The kinds of small differences that may decide: numbers, numerals, dates, negations and symbols.

The lists hold frequent words, as they stand in normal forms. A date that means something else in another
of these languages is left out. Numerals are those of four languages. Negations are those of guards.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import takewhile

from textsim_db.text.guards import NEGATIONS

# Parts of runs of characters, in which a part of a negation may differ alone.
_NEGATION_RUNS = """
不 没 沒 无 無 非 未 别 別 勿 否 ない なく なかっ ません せん ず ไม่ ไม มิ
"""
_DATES = """
january february march april june july august september october november december monday tuesday
wednesday
thursday friday saturday sunday today tomorrow yesterday
januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag
samstag sonntag
heute morgen gestern
januari februari maart mei augustus maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
januari februari mars maj augusti måndag tisdag onsdag torsdag fredag lördag söndag
mandag tirsdag lørdag søndag
janvier février avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi
jeudi vendredi
samedi dimanche
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes
martes miércoles
jueves viernes sábado domingo
janeiro fevereiro março maio junho julho setembro outubro novembro dezembro segunda terça quarta
quinta sexta
gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre lunedì martedì mercoledì
giovedì venerdì
sabato domenica
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
poniedziałek
wtorek środa czwartek piątek sobota niedziela
января февраля марта апреля мая июня июля августа сентября октября ноября декабря понедельник
вторник среда
четверг пятница суббота воскресенье
"""
_NUMERALS = """
two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand
million first second third fourth fifth sixth seventh eighth ninth tenth
zwei drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend
deux trois quatre cinq sept huit neuf dix onze douze cent mille
dos tres cuatro cinco seis siete ocho nueve diez once doce cien mil
ii iii iv vi vii viii ix xi xii xiii xiv xv xvi xvii xviii xix xx
"""
"""Numerals in words in English, German, French and Spanish, and Roman ones that are no other word."""
_UNITS = """
mm cm dm m km ft yd mi mg g kg t lb lbs oz ml cl dl l gal pt s ms min h w kw kwh mw v mv a ma hz
khz mhz ghz kb mb gb tb kib mib gib c f usd eur gbp jpy chf euro euros dollar dollars
"""
_KINDS = (
    dict.fromkeys(_NUMERALS.split(), "numerals")
    | dict.fromkeys(_DATES.split(), "dates")
    | dict.fromkeys([*NEGATIONS, "n"], "negations")  # n of French, beside "pas"
)
INFLECTIONS = "inflections"
"""Other forms of a word, as in Polish after a negation. Alone they are no small difference."""
_SHORTEST_STEM = 4
_LONGEST_ENDING = 3
_LONGEST_RUN = 8
"""The characters of a run of a spaceless script that may be one negation with its word."""


def kinds_of_run(run: Sequence[tuple[str, str]], are_spaceless: bool) -> Iterable[str]:
    """Yield the kinds of a run of different words in two texts, "" for words of no kind.

    run: the words that are aligned; an empty word stands for a gap. are_spaceless: all words are of
    scripts that are written without spaces.
    """
    if are_spaceless:
        one, other = ("".join(words) for words in zip(*run, strict=True))
        negated = [any(part in text for part in _NEGATION_RUNS.split()) for text in (one, other)]
        if len(one + other) <= _LONGEST_RUN and negated[0] != negated[1]:
            return ["negations"]
    return [kind for pair in run for kind in _kinds_of_words(*pair)]


def _kinds_of_words(one: str, other: str) -> set[str]:
    kinds = {_kind(word) for word in (one, other) if word}
    if "negations" in kinds:  # "kein" for "ein", "without" for "with"
        return {"negations"}
    if one and other:
        are_symbols = not any(character.isalnum() for character in one + other)
        if are_symbols or one.rstrip("+#") == other.rstrip("+#"):  # c, c++ and c#
            return {"symbols"}
        is_number = _without_digits(one) == _without_digits(other)
        is_unit = {one, other} <= set(_UNITS.split())
        is_letter = len(one) == len(other) == 1 and one.isalpha() and other.isalpha()
        if is_number or is_unit or (is_letter and one.isascii() and other.isascii()):
            return {"numbers"}
        if "" in kinds and _are_inflected(one, other):
            return {INFLECTIONS}
    return kinds


def _are_inflected(one: str, other: str) -> bool:
    """Say whether two words may be forms of one word: they are alike up to a short ending."""
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return stem >= _SHORTEST_STEM and max(len(one), len(other)) - stem <= _LONGEST_ENDING


def _kind(word: str) -> str:
    return "numbers" if word.lstrip("-")[:1].isnumeric() else _KINDS.get(word, "")


def _without_digits(word: str) -> str:
    return "".join(character for character in word if not character.isnumeric())


_OPERATORS = re.compile(r"[%‰*/\\&@]|(?<=[\w+#])-+(?!\w|[ \t]*[\r\n])")
"""Punctuation that may decide: percent, operators, and the minus of "A-", but not a broken word."""


def symbols(text: str) -> list[str]:
    """Return the symbols of a text, such as currencies, operators, emoji and percent signs, in order."""
    operators = {match.start(): match.group() for match in _OPERATORS.finditer(text)}
    return [
        operators.get(place, character)
        for place, character in enumerate(text)
        if place in operators
        or (not character.isalnum() and unicodedata.category(character)[0] == "S")
    ]
