"""Small differences that may decide: numbers, numerals, letters, units, dates, negations and symbols.

The lists hold frequent words, as they stand in normal forms. A date that means something else in another
of these languages is left out. Numerals are those of four languages. Negations and fillers are those of
guards. They are frozen: the same words stand in 24_guards.sql.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import takewhile

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
mightnt oughtnt shant hardly scarcely
nicht nein kein keine keinen keinem keiner keines keins keinerlei keinesfalls keineswegs nie niemals
nimmer nichts niemand niemanden niemandem niemandes nirgends nirgendwo nirgendwohin nirgendwoher kaum
ohne weder mitnichten
niet geen nooit niets niks niemand nergens zonder
inte nej ingen inget inga aldrig utan ikke ikkje nei ej ei ingenting aldri uten uden
ne pas jamais rien aucun aucune sans guère aucunement nullement
nunca nada nadie ningún ninguno ninguna sin jamás tampoco
não nem sem nenhum nenhuma ninguém jamais
senza nessun nessuno nessuna niente nulla neppure nemmeno neanche
nu fără nici niciun nicio nimic nimeni niciodată
nie bez nigdy żaden żadna żadne żadnych nikt nic
není nejsou nejsem nebyl nebyla nebylo nemá nemám nikdy žádný žádná žádné nikdo nič žiadny
nije nisu nisam nema nemaju nikada nikad ništa nitko niko neće
не нет нету ни никогда без ничего никто нельзя никаких никакой
ні немає ніколи нема нічого ніхто жодного няма нямам нямаш нямаме нямате нямат нямаше нямало нямах
никога нищо никой никъде није нису никада ништа
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
    + ["n t", "w o", "personne n", "nul n", "nulle part"]
    + ["な い", "な く", "な か っ", "ま せ ん", "ず に", "せ ず", "ไ ม่"]
)
"""Negations of several words: n't, and those of scripts in which each character is a word."""
AFTER_N = frozenset(["plus", "personne", "point", "ni", "nul", "nulle", "pu", "su", "osé", "cessé"])
"""The words with which n' of French negates, after a verb: "il n'est plus malade", "il n'a pu venir"."""
AFTER_NE = frozenset(["que", "qu"])
"""The words with which "ne" of French does not negate, but means "only": "il ne mange que du pain"."""
ENDS_OF_NE = AFTER_N | AFTER_NE
ENDS_OF_NE |= {
    "pas",
    "jamais",
    "rien",
    "aucun",
    "aucune",
    "guère",
    "mieux",
    "moins",
    "autre",
    "autres",
}
"""The first of these words after "ne" says what it means; "que" after "mieux" means "than"."""
MOST_WORDS_INSIDE = 3
"""How many words stand between "ne" and its end, at most."""
NEGATION_SYLLABLES = "않없"
"""Characters that negate the Korean word they stand in."""
LONGEST_PHRASE = 3
WORDS_OF_PHRASES = frozenset(" ".join(NEGATION_PHRASES).split())
# Within runs of characters, in which a piece of a negation may differ alone.
_NEGATION_RUNS = """
不 没 沒 无 無 非 未 别 別 勿 否 ない なく なかっ ません せん ず ไม่ ไม มิ
"""
# Articles; forms of be, do, have and can; politeness; particles and prepositions without an opposite. A
# corpus does not know the languages of its texts, so each word counts in every text. A filler too much
# merges two texts, and one too few only keeps a copy. So a word is left out if it decides in another of
# these languages, or names something: "die" and "hat" of German; "van" of Dutch; "en" of Dutch, because
# its "of" means "or"; "de" of French, because "de" and "a" are from and to in Spanish; "da" of Italian;
# "dos" of Portuguese; "sei" of Italian; "son" and "hay" of Spanish; "on" of Finnish; "var" of Swedish.
# Pronouns and words of time, place, order and amount are no fillers, and no negation is one.
# The lines are English; German; Dutch; Scandinavian; French; Spanish and Portuguese; Italian; Romanian;
# Polish; Czech and Slovak; Russian, Ukrainian and Bulgarian; Greek; Turkish; Finnish and Hungarian;
# Indonesian; Hindi; Chinese and Japanese.
_FILLER_WORDS = """
a an the am is are was were be been being do does did done doing have has had having can could of at
please pls kindly thanks thank hello hi hey
der das den dem des ein eine einen einem einer eines ist sind waren wäre habe hast haben habt hatte
hatten kann kannst können könnte könnten konnte tun tut getan bei beim bitte danke hallo
het een heeft hebben hadden kan kunt kunnen alstublieft graag
är har hade gör gjorde ett tack vær være været kunne gjør gjorde hej
le la les un une des est sont suis sommes êtes était étaient être ont avons avez avait avaient avoir
peut peux pouvez peuvent pouvoir fait faire merci bonjour svp
el los las una del está están estar ser es ha han puede puedo pueden poder hace hacer gracias hola
um uma é são está estão foi tem têm pode posso podem obrigado obrigada olá
il lo gli di del della dello dei degli delle è sono essere hanno abbiamo può posso possono prego
grazie ciao
sunt fost avem aveți rog mulțumesc
jest są być był była było były mogę może można proszę dziękuję cześć
jsou byl byla bylo byli být může mohu lze prosím děkuji sú bol bola bolo byť môže ďakujem ahoj
есть был была было были быть могу может можно пожалуйста спасибо здравствуйте привет
є був була було були бути можна може дякую е са съм беше може моля благодаря
ο το οι τα τον την του τησ των ένασ μια ένα είναι ήταν έχει έχουν είχε μπορεί μπορώ παρακαλώ ευχαριστώ
bir lütfen teşekkürler merhaba
ovat oli olivat olla kiitos hei egy vannak kérem köszönöm
adalah ialah tolong silakan dapat terima kasih
है हैं था थी थे का की के कृपया
的 是 请 請 吗 嗎 呢 吧 の
"""
FILLERS = frozenset(_FILLER_WORDS.split())
"""Words that the guard content leaves out, as they stand in normal forms."""
_HOSTS = """
i you he she it we they this that there here what who where when how why which
"""
HOSTS = frozenset(_HOSTS.split())
"""Words before which an apostrophe has left one of CLITICS: in "what's" it is a filler."""
CLITICS = frozenset(["s", "m", "re", "ve", "d"])
"""Forms of be and have after an apostrophe, fillers after one of HOSTS; elsewhere "m" is a metre."""
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
_WORDS_OF_NUMBERS = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
million first second third fourth fifth sixth seventh eighth ninth tenth
zwei drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend
deux trois quatre cinq sept huit neuf dix onze douze cent mille
dos tres cuatro cinco seis siete ocho nueve diez once doce cien mil
ii iii iv vi vii viii ix xi xii xiii xiv xv xvi xvii xviii xix xx
xxi xxii xxiii xxiv xxv xxvi xxvii xxviii xxix
jr sr
一 二 三 四 五 六 七 八 九 十 百 千 万 億 亿
"""
NUMERALS = frozenset(_WORDS_OF_NUMBERS.split())
"""Numerals in words in English, German, French and Spanish, and Roman ones that are no other word."""
_NUMERALS_BESIDE_ONE = frozenset(
    ["i", "v", "x", "l", "one", "eins", "ein", "eine", "un", "une", "uno", "una"]
)
"""Words that are numerals if the word in their place in the other text is surely one."""
_GENERATIONS = frozenset(["jr", "sr", "junior", "senior"])
_WORDS_OF_UNITS = """
mm cm dm m km ft yd mi mg g kg t lb lbs oz ml cl dl l gal pt s ms min h w kw kwh mw v mv a ma hz
khz mhz ghz kb mb gb tb kib mib gib c f usd eur gbp jpy chf euro euros dollar dollars
"""
COMPARED_UNITS = frozenset(_WORDS_OF_UNITS.split())
"""Units and currencies; such a word is a unit if the word in its place in the other text is one."""
_KINDS = (
    dict.fromkeys(NUMERALS, "numerals")
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
        negated = [any(run in text for run in _NEGATION_RUNS.split()) for text in (one, other)]
        if len(one + other) <= _LONGEST_RUN and negated[0] != negated[1]:
            return ["negations"]
    return [kind for pair in run for kind in _kinds_of_words(*pair)]


def numerals_and_units(words: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the kinds of different words in two texts: numerals, and units if both texts have one."""
    kinds = []
    for kind, names in (("numerals", NUMERALS), ("units", COMPARED_UNITS)):
        one, other = names.intersection(words), names.intersection(others)
        if one != other and ((one and other) or kind == "numerals"):
            kinds.append(kind)
    return kinds


def _kinds_of_words(one: str, other: str) -> set[str]:
    kinds = {_kind(word) for word in (one, other) if word}
    if "negations" in kinds:  # "kein" for "ein", "without" for "with"
        return {"negations"}
    if one and other:
        are_symbols = not any(character.isalnum() for character in one + other)
        if are_symbols or one.rstrip("+#") == other.rstrip("+#"):  # c, c++ and c#
            return {"symbols"}
        if _without_digits(one) == _without_digits(other):
            return {"numbers" if has_digit(one + other) else "numerals"}
        if len(one) == len(other) == 1 and (one + other).isascii() and (one + other).isalpha():
            return {"letters"}
        if {one, other} <= COMPARED_UNITS:
            return {"units"}
        if {one, other} <= _GENERATIONS:
            return {"numerals"}
        if kinds <= {"numbers", "numerals", ""} and {one, other} & _NUMERALS_BESIDE_ONE:
            kinds.discard("")
            return kinds or {""}
        if "" in kinds and _are_inflected(one, other):
            return {INFLECTIONS}
    return kinds


def may_be_numeral(word: str) -> bool:
    """Say whether a word is a numeral, or is one beside another numeral."""
    others = _NUMERALS_BESIDE_ONE | _GENERATIONS
    return _kind(word) == "numerals" or word in others


def _are_inflected(one: str, other: str) -> bool:
    """Say whether two words may be forms of one word: they are alike up to a short ending."""
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return stem >= _SHORTEST_STEM and max(len(one), len(other)) - stem <= _LONGEST_ENDING


def _kind(word: str) -> str:
    if word.lstrip("-")[:1].isnumeric():
        return "numbers" if has_digit(word) else "numerals"
    return _KINDS.get(word, "")


def _without_digits(word: str) -> str:
    return "".join(character for character in word if not character.isnumeric())


_SIGNS = re.compile(
    r"([%‰*/\\&@]|(?<=[0-9])[-‐-―−.,:](?=[0-9])|(?<![^\s(\[])\.(?=[0-9])"
    r"|(?<=[^\s-])-(?=-*(?:[^\S\n-\r\x85\u2028\u2029]+(?:[^\s]|\Z)|[]),.;:!?\"'…[]|\Z)))"
    r"|[^\W\d_]\++(?![\w+])|([^\w\s−]|−(?![0-9]))"
)
"""Punctuation that may decide: percent, operators, the signs and the point of numbers, and the minus of
"A-", but not a broken word; the end of a word such as "c++"; and characters that may be symbols."""
_DASHES = frozenset("‐‑‒–—―−")
_DIGITS = frozenset("0123456789")


def symbols(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """Return the symbols of a text, or of a part of it, in order.

    They are currencies, operators, emoji, percent signs, and the signs in numbers.
    """
    signs = []
    for match in _SIGNS.finditer(text, start):
        if end is not None and match.start() >= end:
            break
        sign = match[0]
        if match[1] or (match[2] and unicodedata.category(sign)[0] == "S"):
            signs.append("-" if sign in _DASHES else sign)
    return signs


def has_digit(word: str) -> bool:
    return not _DIGITS.isdisjoint(word)
