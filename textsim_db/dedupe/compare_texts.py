"""pairs(), clusters(), distinct() and split(): near-duplicates among texts in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int64Array
from textsim_db.cluster import linkages
from textsim_db.cluster.draw_subsets import check_shares, draw_subsets
from textsim_db.cluster.join import Join
from textsim_db.cluster.linkages import Ranked
from textsim_db.cluster.spanning_forest import joined_links
from textsim_db.compare.match_rule import Criterion
from textsim_db.corpus.arguments import checked_count
from textsim_db.dedupe.loaded_texts import KeyedText, LoadedTexts, key_of
from textsim_db.errors import DocumentError, suggest_settings
from textsim_db.files.arrow_frames import ArrowTable
from textsim_db.files.several_texts import KeyedTexts, keyed_texts
from textsim_db.measures.by_name import JACCARD
from textsim_db.results import AddReport, Cluster, Distinct, Pair, Split
from textsim_db.results.html import ResultList
from textsim_db.results.rows import AnyKey
from textsim_db.settings.check_values import check_callable
from textsim_db.settings.corpus_settings import (
    IN_MEMORY,
    PAIR_SETTINGS,
    CorpusConfig,
    CorpusSettings,
    Settings,
)
from textsim_db.settings.named_values import Linkage, LinkageName, check_linkage
from textsim_db.text.stop_words import with_lists

if TYPE_CHECKING:
    from textsim_db.dedupe.removals import Document


@overload
def pairs(  # type: ignore[overload-overlap]
    texts: Mapping[AnyKey, str], **settings: Unpack[Settings]
) -> ResultList[Pair[AnyKey]]: ...


@overload
def pairs(
    texts: ArrowTable,
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> ResultList[Pair[Any]]: ...


@overload
def pairs(texts: Iterable[str], **settings: Unpack[Settings]) -> ResultList[Pair[int]]: ...


@suggest_settings(*PAIR_SETTINGS)
def pairs(
    texts: Mapping[Any, str] | Iterable[str] | ArrowTable,
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> ResultList[Pair[Any]]:
    """Return the pairs of similar texts, each once and verified exactly, best first.

    By default it finds every pair whose similarity reaches the threshold. A lower recall, or bands and
    rows, may take less time, and find that share of the pairs at the threshold, and more of those above
    it. It needs no database; texts and pairs are in memory. The pairs are those of a corpus with these
    settings.

    Args:
        texts: the texts, which their places name in the result, from 0 on; or a mapping of keys to
            texts, with keys that are all texts or all integers. Also a column of texts, where the index
            of a Series of pandas has the keys; or a data frame of pandas or Polars, or a table with the
            Arrow PyCapsule interface, which needs PyArrow.
        text: the name of the frame's column of texts.
        key: the name of the frame's column of unique keys; by default the places of the rows name them.
        **settings: fields of CorpusSettings that say which texts match, such as threshold. The default
            of recall is 1.

    Raises:
        ConfigurationError: a setting is unknown or out of range, `texts` is a single text or has no
            order, a column is missing, or a key comes twice.
        DocumentError: a text cannot be compared, for example because it is None.

    Examples:
        >>> textsim_db.pairs(["Rain in the north on Monday.", "Rain in the north, on Monday!", "Sun."])
        [Pair(a=0, b=1, similarity=1.0)]
    """
    documents = keyed_texts(texts, "pairs", text, key)
    join = join_of(load(documents, settings, for_merges=False), for_merges=False)
    matching = [
        Pair(documents.keys[a], documents.keys[b], similarity)
        for links in join.pairs()
        for a, b, similarity in zip(
            np.minimum(links.left, links.right).tolist(),
            np.maximum(links.left, links.right).tolist(),
            links.similarity.tolist(),
            strict=True,
        )
    ]
    return ResultList(sorted(matching, key=lambda pair: (-pair.similarity, pair.a, pair.b)))


@overload
def clusters(  # type: ignore[overload-overlap]
    texts: Mapping[AnyKey, str], linkage: LinkageName = "single", **settings: Unpack[Settings]
) -> ResultList[Cluster[AnyKey]]: ...


@overload
def clusters(
    texts: ArrowTable,
    linkage: LinkageName = "single",
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> ResultList[Cluster[Any]]: ...


@overload
def clusters(
    texts: Iterable[str], linkage: LinkageName = "single", **settings: Unpack[Settings]
) -> ResultList[Cluster[int]]: ...


@suggest_settings(*PAIR_SETTINGS)
def clusters(
    texts: Mapping[Any, str] | Iterable[str] | ArrowTable,
    linkage: LinkageName = "single",
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> ResultList[Cluster[Any]]:
    """Return the clusters of similar texts, the largest first; each has two texts or more.

    It needs no database. The clusters are those of the pairs that pairs() finds with these settings, by
    default every pair.

    Args:
        texts: as for pairs(), and so are text and key.
        linkage: how pairs make clusters, as in Corpus.clusters(). With "kept", the first text of a
            cluster is considered first.
        **settings: as for pairs().

    Raises:
        ConfigurationError: as pairs(), or the linkage is unknown.
        DocumentError: a text cannot be compared, for example because it is None.

    Examples:
        >>> textsim_db.clusters({"a": "one two three", "b": "One, two, three.", "c": "four"})
        [Cluster(keys=('a', 'b'), weakest=1.0, kept=None)]
    """
    how = check_linkage(linkage)
    documents = keyed_texts(texts, "clusters", text, key)
    join = join_of(load(documents, settings, for_merges=True), for_merges=True)
    groups = linkages.groups(join, how, _in_order)
    similar = [group.with_keys(documents.keys.__getitem__) for group in groups]
    return ResultList(sorted(similar, key=lambda cluster: (-len(cluster.keys), cluster.keys)))


@overload
def distinct(  # type: ignore[overload-overlap]
    texts: Mapping[AnyKey, str], max_results: int | None = None, **settings: Unpack[Settings]
) -> ResultList[Distinct[AnyKey]]: ...


@overload
def distinct(
    texts: ArrowTable,
    max_results: int | None = None,
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> ResultList[Distinct[Any]]: ...


@overload
def distinct(
    texts: Iterable[str], max_results: int | None = None, **settings: Unpack[Settings]
) -> ResultList[Distinct[int]]: ...


@suggest_settings(*PAIR_SETTINGS)
def distinct(
    texts: Mapping[Any, str] | Iterable[str] | ArrowTable,
    max_results: int | None = None,
    *,
    text: str | None = None,
    key: str | None = None,
    **settings: Unpack[Settings],
) -> ResultList[Distinct[Any]]:
    """Return texts in order of rank without copies, such as the results of a search.

    A copy is a text that may be merged with one of higher rank: they are similar, and their guards are
    equal. It belongs to the most similar text that is kept.

    Args:
        texts: the texts, the best first; otherwise as for pairs(), and so are text and key. A mapping
            and a frame have the order of their items and rows, not that of their keys.
        max_results: the largest number of results, which is applied after copies are left out; None
            returns all.
        **settings: as for pairs().

    Raises:
        ConfigurationError: as pairs(), or max_results is out of range.
        DocumentError: a text cannot be compared, for example because it is None.

    Examples:
        >>> textsim_db.distinct(["Rain in the north.", "Sun.", "Rain, in the north!"], max_results=10)
        [Distinct(key=0, rank=1, copies=(2,)), Distinct(key=1, rank=2, copies=())]
    """
    most = checked_count(max_results, "max_results")
    documents = keyed_texts(texts, "distinct", text, key, are_ranked=True)
    loaded = load(documents, settings, for_merges=True)
    links = joined_links(
        linkages.removals(join_of(loaded, for_merges=True), Linkage.KEPT, _in_order)
    )
    copies: dict[int, list[int]] = {number: [] for number in loaded.numbers().tolist()}
    for removed, kept in sorted(zip(links.left.tolist(), links.right.tolist(), strict=True)):
        copies[kept].append(removed)
        del copies[removed]
    return ResultList(
        Distinct(documents.keys[number], number + 1, tuple(map(documents.keys.__getitem__, copied)))
        for number, copied in islice(copies.items(), most)
    )


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
    checked = check_shares(shares, random_seed)
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
    loaded = LoadedTexts(config, for_merges=True, memory=memory)

    def keyed() -> Iterator[KeyedText]:
        for number, (text, value, scope, _) in enumerate(documents):
            strata.append(repr(value))
            if text is not None:
                yield key_of(number), text, scope

    refused = loaded.read(keyed(), progress)
    numbers = loaded.numbers()
    of_numbers = [strata[number] for number in numbers.tolist()]
    join = join_of(loaded, for_merges=True)
    split = draw_subsets(join, numbers.tolist(), of_numbers, shares, random_seed)
    return SplitDocuments(numbers, split, refused)


_in_order: Ranked = np.sort


def load(documents: KeyedTexts, settings: Settings, for_merges: bool) -> LoadedTexts:
    loaded = LoadedTexts(with_lists(CorpusSettings(**IN_MEMORY | settings)).complete(), for_merges)

    def expect_none_refused(report: AddReport) -> None:
        for refusal in report.refused:
            raise DocumentError(f"{documents.name_of(int(refusal.key))}: {refusal.reason}")

    keyed = ((key_of(n), text) for n, text in enumerate(documents.texts))
    loaded.read(keyed, expect_none_refused)
    return loaded


def join_of(loaded: LoadedTexts, for_merges: bool) -> Join:
    criterion = Criterion(JACCARD, loaded.config.threshold, for_merges=for_merges)
    return Join(loaded.host(), criterion)
