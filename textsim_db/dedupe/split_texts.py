"""split(): texts in memory split at random, so that no similar pair is cut, without a database."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int64Array
from textsim_db.cluster.draw_subsets import check_shares, draw_subsets
from textsim_db.dedupe.compare_texts import join_of, load
from textsim_db.dedupe.loaded_texts import KeyedText, LoadedTexts, key_of
from textsim_db.dedupe.removals import Document
from textsim_db.errors import suggest_settings
from textsim_db.files.read_frame import ArrowTable
from textsim_db.files.several_texts import keyed_texts
from textsim_db.results import AddReport, Split
from textsim_db.settings.check_values import check_callable, check_count
from textsim_db.settings.corpus_settings import PAIR_SETTINGS, CorpusConfig, Settings


@suggest_settings(*PAIR_SETTINGS)
def split(
    texts: Mapping[Any, str] | Iterable[str] | ArrowTable,
    shares: Mapping[str, float],
    random_seed: int = 0,
    stratify: Callable[[Any], Hashable] | None = None,
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> Split[Any]:
    """Split texts at random into subsets such as train and test, so that no similar pair is cut.

    Each cluster of linkage "single" goes whole into one subset. By default every pair of similar texts
    is compared, so no text of one subset is similar to a text of another. If a cluster is too large for
    the shares, a warning has the figures.

    Args:
        texts: as for pairs(), and so are text and key.
        shares: the share of each subset, by its name; they sum to 1.
        random_seed: the same texts with the same random seed are split alike.
        stratify: returns the class of a key, such as its label: each class is split in these shares, as
            far as clusters allow.
        **settings: as for pairs().

    Raises:
        ConfigurationError: as pairs(), the shares do not sum to 1, or a subset would be empty.
        DocumentError: a text cannot be compared, for example because it is None.

    Examples:
        >>> news = ["Rain in the north.", "Sun.", "Rain, in the north!", "Snow."]
        >>> textsim_db.split(news, {"train": 0.5, "test": 0.5})
        Split(subsets={'train': (0, 2), 'test': (1, 3)}, cut=0, largest=2)
    """
    checked = check_shares(shares)
    check_count(random_seed, "random_seed", 0, 2**63 - 1)
    check_callable(stratify, "stratify")
    documents = keyed_texts(texts, "split", text, key)
    loaded = load(documents, settings, for_merges=True)
    keys = documents.keys[: len(loaded.numbers())]
    strata = [None if stratify is None else stratify(each) for each in keys]
    return draw_subsets(join_of(loaded, for_merges=True), keys, strata, checked, random_seed)


class SplitDocuments(NamedTuple):
    """Numbered documents that were split."""

    numbers: Int64Array
    """The documents that were compared, by number."""
    split: Split[int]
    """Its keys are these numbers."""
    refused: list[tuple[int, str]]
    """The number of each document that cannot be compared, with the reason."""

    def masks(self, documents: int) -> Iterator[BoolArray]:
        """Yield for each subset which of all documents it has."""
        for numbers in self.split.subsets.values():
            mask = np.zeros(documents, np.bool_)
            mask[[*numbers]] = True
            yield mask


def split_documents(
    documents: Iterable[Document],
    config: CorpusConfig,
    shares: Mapping[str, float],
    random_seed: int,
    memory: int | None,
    progress: Callable[[AddReport], None],
) -> SplitDocuments:
    """Split documents as split() does; their values are their classes. memory: as for LoadedTexts."""
    strata: list[str] = []
    loaded, report = LoadedTexts(config, for_merges=True, memory=memory), AddReport()

    def keyed() -> Iterator[KeyedText]:
        for number, (text, value, scope, _) in enumerate(documents):
            strata.append(repr(value))
            if text is not None:
                yield (key_of(number), text) if scope is None else (key_of(number), text, scope)

    for batch in loaded.read(keyed()):
        report.added += len(batch.keys)
        report.refused += batch.refused
        progress(report)
    numbers = loaded.numbers()
    of_numbers = [strata[number] for number in numbers.tolist()]
    join = join_of(loaded, for_merges=True)
    split = draw_subsets(join, numbers.tolist(), of_numbers, shares, random_seed)
    refused = [(int(refusal.key), refusal.reason) for refusal in report.refused]
    return SplitDocuments(numbers, split, refused)
