"""Golden values: if one of them changes, the stored rows of every corpus are wrong.

unit/test_golden.py compares them with Python, sql/test_hashes.py with the server's functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from textsim_db.settings.corpus_settings import CorpusConfig, CorpusSettings


class Golden(NamedTuple):
    """A text with its normal form, and the digest of its values, its signature and its buckets."""

    name: str
    shingle: str
    text: str
    normal_form: str
    digest: str


def digest(*values: Sequence[int]) -> str:
    """Return a digest of lists of numbers."""
    return hashlib.sha256(repr([list(each) for each in values]).encode()).hexdigest()[:16]


def golden_config(shingle: str) -> CorpusConfig:
    return CorpusSettings(shingle, num_hashes=8, bands=2, rows=3, seed=7).complete()


def exact_golden_config(shingle: str) -> CorpusConfig:
    return CorpusSettings(shingle, threshold=EXACT_THRESHOLD, recall=1).complete()


MANY_MARKS = (
    "a" + "\u0316\u0301" * 40 + "b \u0301ｶ" + "\uff9e" * 33 + "\u0378" + "\u0903" * 31 + "x"
)
CAPPED_MARKS = "á" + "\u0316" * 15 + "\u0301" * 14 + "b ガ" + "\u3099" * 29 + " x"
TEXTS = {
    "latin": (
        "The QUICK brown fox — naïve, ﬁne — jumped over 13 lazy dogs.",
        "the quick brown fox naïve fine jumped over 13 lazy dogs",
    ),
    "turkish and german": (
        "İSTANBUL'da IŞIK; Straße STRASSE ẞ",
        "istanbul da işik strasse strasse ss",
    ),
    "cyrillic": (
        "Съешь же ЕЩЁ этих мягких французских булок, да выпей чаю",
        "съешь же ещё этих мягких французских булок да выпей чаю",
    ),
    "greek": (
        "Ξεσκεπάζω τὴν ψυχοφθόρα ΒΔΕΛΥΓΜΊΑ, Ὀδυσσεύς ΟΔΥΣΣΕΥΣ",
        "ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία ὀδυσσεύσ οδυσσευσ",
    ),
    "han": (
        "敏捷的棕色狐狸跳过了懒狗。㈱２０２４年",
        "敏 捷 的 棕 色 狐 狸 跳 过 了 懒 狗 株 2024 年",
    ),
    "kana": (
        "素早いキツネがﾉﾛﾏな犬を飛び越える",
        "素 早 い キ ツ ネ が ノ ロ マ な 犬 を 飛 び 越 え る",
    ),
    "thai": ("สุนัขจิ้งจอกสีน้ำตาลกระโดดข้าม", "สุ นั ข จิ้ ง จ อ ก สี น้ํ า ต า ล ก ร ะ โ ด ด ข้ า ม"),
    "arabic": ("الثَّعْلَبُ السريع ﷺ ١٢٣ قفز", "الثعلب السريع صلي الله عليه وسلم 123 قفز"),
    "devanagari": ("तेज़ भूरी लोमड़ी क्षण में कूद गई।", "तेज़ भूरी लोमड़ी क्षण में कूद गई"),
    "emoji": (
        "fox \U0001f98a\ufe0f jumps \U0001f469\u200d\U0001f680 \xbd km\xb2 \U00010570",
        "fox jumps 1 2 km2",
    ),
    "decomposed": ("e\u0301te\u0301 E\u0323\u0301 \u1100\u1161\u11a8 a\u0315\u0300", "été ẹ́ 각 à̕"),
    "one word": ("Word", "word"),
    "many marks": (MANY_MARKS, CAPPED_MARKS),
    "signs": (
        "The recom-\nmended C++, c# and −٣° (−5) "
        "co\u00adop™ 10\u2075 rose\u00b9 1\u00bd 2-3 п\u02bcять 5\ufe0f\u20e3",
        "the recommended c++ c# and -3 -5 coop 10 5 rose 1 1 1 2 2 3 п ять 5",
    ),
    "symbols": ("\U0001f44d\ufe0f \U0001f44d $!", "👍 👍 $"),
    "no words": (" … !", ""),
}
"""The text and its normal form, by name."""
DIGESTS = {
    ("latin", "word:2"): "361c70d232a47bff",
    ("turkish and german", "word:2"): "dd404324f8ad8b95",
    ("cyrillic", "word:2"): "cecdaffd59d11d8a",
    ("greek", "word:2"): "5535eed9facf228e",
    ("han", "word:2"): "dde35b77e07ac56e",
    ("kana", "word:2"): "0b4b2af7c0c2b022",
    ("thai", "word:2"): "c81082f656bf5400",
    ("arabic", "word:2"): "59e78538d9b2584a",
    ("devanagari", "word:2"): "41e953993e603f6f",
    ("emoji", "word:2"): "05b82474b0255d7d",
    ("decomposed", "word:2"): "3ef55ea839519240",
    ("one word", "word:2"): "f58e6a4b7d21f188",
    ("many marks", "word:2"): "1cf8d318edde4585",
    ("signs", "word:2"): "f56167a09a3cd92d",
    ("symbols", "word:2"): "e34810c64eab38d6",
    ("no words", "word:2"): "f865256c77f3fc9f",
    ("latin", "char:4"): "ef4bcb5f233295ed",
    ("turkish and german", "char:4"): "0995ba6d21534db2",
    ("cyrillic", "char:4"): "3cc3b384957e0a58",
    ("greek", "char:4"): "25b0807ac23cc8a0",
    ("han", "char:4"): "118f4fee116ca954",
    ("kana", "char:4"): "07ba384bd7f22808",
    ("thai", "char:4"): "2770fc017aaa9b75",
    ("arabic", "char:4"): "f996b38a4c851a1f",
    ("devanagari", "char:4"): "cef99903b909b443",
    ("emoji", "char:4"): "96064066a8cc51de",
    ("decomposed", "char:4"): "514fbdbf61b155b1",
    ("one word", "char:4"): "5b23838a56c46402",
    ("many marks", "char:4"): "a3cd51f7e2223feb",
    ("signs", "char:4"): "01a46fc5dff01fbd",
    ("symbols", "char:4"): "1acd14e51928d7dc",
    ("no words", "char:4"): "f865256c77f3fc9f",
}
EXACT_THRESHOLD = 0.55
EXACT_DIGESTS = {
    ("latin", "word:2"): "8f67fea23393f57f",
    ("han", "word:2"): "ed748cee873b8704",
    ("one word", "word:2"): "39cc69bfd91caf08",
    ("no words", "word:2"): "cf1cbb66a638b486",
    ("arabic", "char:4"): "412423f61649a4b4",
}
"""Digests of the signatures in an exact corpus."""
GOLDEN = [Golden(name, shingle, *TEXTS[name], found) for (name, shingle), found in DIGESTS.items()]
