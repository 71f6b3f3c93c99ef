"""Golden values of the recipe: if one of them changes, the stored rows of every corpus are wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support import reference
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.sketch import sketch_texts
from textsim_db.sketch.fast_similarity import base
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import normal_form, tokenize

MANY_MARKS = "a" + "\u0316\u0301" * 40 + "b \u0301ｶ" + "\uff9e" * 33 + "\u0378"
MANY_MARKS += "\u0903" * 31 + "x"
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
    "word:2": "361c70d232a47bff dd404324f8ad8b95 cecdaffd59d11d8a 5535eed9facf228e dde35b77e07ac56e "
    "0b4b2af7c0c2b022 c81082f656bf5400 59e78538d9b2584a 41e953993e603f6f 05b82474b0255d7d "
    "3ef55ea839519240 f58e6a4b7d21f188 1cf8d318edde4585 f56167a09a3cd92d e34810c64eab38d6 "
    "f865256c77f3fc9f",
    "char:4": "ef4bcb5f233295ed 0995ba6d21534db2 3cc3b384957e0a58 25b0807ac23cc8a0 118f4fee116ca954 "
    "07ba384bd7f22808 2770fc017aaa9b75 f996b38a4c851a1f cef99903b909b443 96064066a8cc51de "
    "514fbdbf61b155b1 5b23838a56c46402 a3cd51f7e2223feb 01a46fc5dff01fbd 1acd14e51928d7dc "
    "f865256c77f3fc9f",
}
"""The digests of the values, the signature and the buckets of each text."""
EXACT_THRESHOLD = 0.55
EXACT_DIGESTS = {
    ("latin", "word:2"): "8f67fea23393f57f",
    ("han", "word:2"): "ed748cee873b8704",
    ("one word", "word:2"): "39cc69bfd91caf08",
    ("no words", "word:2"): "cf1cbb66a638b486",
    ("arabic", "char:4"): "412423f61649a4b4",
}
"""Digests of the signatures in an exact corpus."""


def digest(*values: Sequence[int]) -> str:
    """Return a digest of lists of numbers."""
    return hashlib.sha256(repr([list(each) for each in values]).encode()).hexdigest()[:16]


@pytest.mark.parametrize("number", range(len(TEXTS)), ids=[*TEXTS].__getitem__)
@pytest.mark.parametrize("shingle", DIGESTS)
def test_the_golden_values(number: int, shingle: str) -> None:
    text, form = [*TEXTS.values()][number]
    config = CorpusSettings(shingle, num_hashes=8, bands=2, rows=3, seed=7).complete()
    assert normal_form(text) == reference.normal_form(text) == form
    shingles = find_shingles(tokenize([text.encode()]), config.shingle)
    values = shingles.hashes.astype(np.int64).tolist()
    assert values == reference.shingle_values(text, *config.shingle)
    signature = sketch_texts.signature(text, config).tolist()
    buckets = sketch_texts.buckets(text, config).tolist()
    assert digest(values, signature, buckets) == DIGESTS[shingle].split()[number]


@pytest.mark.parametrize(("name", "shingle"), EXACT_DIGESTS)
def test_the_signature_of_an_exact_corpus_is_the_golden_value(name: str, shingle: str) -> None:
    text = TEXTS[name][0]
    config = CorpusSettings(shingle, threshold=EXACT_THRESHOLD, recall=1).complete()
    signature = sketch_texts.signature(text, config).tolist()
    assert sketch_texts.buckets(text, config).tolist() == signature
    values = reference.shingle_values(text, *config.shingle)
    assert reference.exact_signature(values, EXACT_THRESHOLD) == signature
    assert digest(signature) == EXACT_DIGESTS[name, shingle]


def test_the_base_is_a_number_of_splitmix64() -> None:
    # The first numbers of splitmix64 with the states 0 and 7, without the highest two bits.
    assert base(0) == 0xE220A8397B1DCDAF & (2**62 - 1)
    assert base(7) == 0x23CBE1E459320DD7
    assert all(base(seed) == reference.base(seed) for seed in (0, 1, 2**63 - 1))
