"""The reports of textsim dedupe, and the file by which a killed run goes on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textsim_db.cli.options import misused
from textsim_db.errors import InputError
from textsim_db.files.records import replacing
from textsim_db.results.shown_values import shown
from textsim_db.settings.named_values import Guard

if TYPE_CHECKING:
    from textsim_db.dedupe.removal_summary import AnyDocument, Example, Removal, RemovalSummary
    from textsim_db.dedupe.removals import Deduplication
    from textsim_db.measures.word_diff import DiffRun
    from textsim_db.settings.corpus_settings import CorpusConfig

LINES, WEB_PAGE = ".jsonl", ".html"


def is_page(report: str | None) -> bool:
    return report is not None and report.endswith(WEB_PAGE)


def check_report(report: str, *endings: str) -> None:
    """Raise an error if the name of a report has none of the endings, by default .jsonl and .html."""
    allowed = endings or (LINES, WEB_PAGE)
    if not report.endswith(allowed):
        raise misused("--report", f"{shown(report)} does not end in {' or '.join(allowed)}")


def write_clusters(
    path: str,
    result: Deduplication,
    keys: Sequence[str | None],
    file_of: Callable[[int], str | None],
) -> None:
    """Write a line of JSON for each cluster.

    keys: the key of each record. file_of: returns the file of a record if there are several files.
    """

    def document(number: AnyDocument) -> dict[str, Any]:
        if not isinstance(number, int):
            return number._asdict()
        names = {"key": keys[number], "file": file_of(number)}
        return {"record": number + 1} | {k: v for k, v in names.items() if v is not None}

    with replacing(path) as file:
        lines: dict[AnyDocument, dict[str, Any]] = {}
        for name, links in (("also_kept", result.also_kept), ("removed", result.removals)):
            for number, kept, similarity in sorted(links):
                cluster = lines.setdefault(kept, {"kept": document(kept)})
                cluster.setdefault(name, []).append({**document(number), "similarity": similarity})
        for kept in result.cluster_sizes():
            if "removed" in lines[kept]:
                line = json.dumps(lines[kept], ensure_ascii=False) + "\n"
                # UTF-8 has no lone surrogates, so they are escaped as in JSON.
                file.write(line.encode("utf-8", "backslashreplace"))


def summary_lines(
    summary: RemovalSummary, tips: str, name_of: Callable[[AnyDocument], str]
) -> Iterator[str]:
    """Yield what was removed, unless all removed documents have the words and symbols of the kept ones.

    tips: follow if a kind of words differs. name_of: returns the name of a record.
    """
    from textsim_db.dedupe.removal_summary import TENTHS

    below = [f"{n:,} from {i / TENTHS}" for i, n in enumerate(summary.tenths) if n and i < TENTHS]
    if not below and not summary.differing:
        return
    same = [f"{summary.tenths[TENTHS]:,} at 1"] if summary.tenths[TENTHS] else []
    yield f"similarity of the removed documents: {', '.join(below + same)}"
    yield "the least similar:" if below else "some that differ:"
    lowest = summary.lowest if below else [each for each in summary.lowest if each.differs]
    yield from _example_lines(lowest, name_of)
    if summary.largest_size > len(summary.lowest) and summary.largest != summary.lowest:
        yield f"of the largest cluster, from which {summary.largest_size:,} were removed:"
        yield from _example_lines(summary.largest, name_of)
    differ = [
        f"only {'the order of words differs' if kind == 'order' else f'{kind} differ'} in {n:,}"
        for kind, n in summary.distinctions.items()
    ]
    if summary.differ_in_one_word:
        differ.append(f"one word, such as a name, differs in {summary.differ_in_one_word:,}")
    if differ:
        yield f"of {summary.compared:,} compared word by word, {', '.join(differ)}"
        yield tips


def keep_apart_tips(summary: RemovalSummary, config: CorpusConfig, has_page: bool) -> str:
    """Return the options that keep such documents apart, beyond those of the run."""
    tip = f"what keeps such documents apart: {' or '.join(_ways_apart(summary, config))}"
    return tip if has_page else f"{tip}; --report removed.html shows them side by side"


_MOST_GUARD_WORDS = 8


def _ways_apart(summary: RemovalSummary, config: CorpusConfig) -> Iterator[str]:
    """Yield the options that keep documents apart that differ so little."""
    kinds = {guard for guard in Guard if guard in summary.distinctions}
    kinds |= {Guard.WORDS} if summary.numerals else set()
    kinds |= {Guard.CONTENT} if summary.differ_in_one_word else set()
    if new := [guard for guard in Guard if guard in kinds - set(config.guards)]:
        words = ",".join(summary.numerals[:_MOST_GUARD_WORDS])
        more = ",..." if len(summary.numerals) > _MOST_GUARD_WORDS else ""
        of_words = f" --guard-words {words}{more}" if Guard.WORDS in new else ""
        yield f"--guard {','.join([*config.guards, *new])}{of_words}"
    if not summary.distinctions.keys().isdisjoint({"order", "symbols"}):
        yield "--judgements FILE"
    yield "one more --scope COLUMN" if config.scoped else "--scope COLUMN"


_HTML = re.compile(
    r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
    r"|</?(?:a|abbr|b|blockquote|br|code|dd|div|dl|dt|em|figure|font|h[1-6]|hr|i|img|li|ol|p|pre|script|small"
    r"|span|strong|style|sub|sup|table|tbody|td|th|thead|tr|u|ul)\b[^<>]*>",
    re.IGNORECASE,
)


@dataclass
class HtmlCount:
    """Counts the texts that have entities or tags of HTML, which are compared as words."""

    texts: int = 0
    first: tuple[int, str] = (0, "")
    """The place of the first such text among all texts, and its first entity or tag."""

    def add(self, place: int, text: str) -> None:
        if ("&" in text or "<" in text) and (match := _HTML.search(text)):
            self.texts += 1
            if self.texts == 1:
                self.first = place, match[0]

    def note(self, name_of: Callable[[int], str]) -> str:
        place, markup = self.first
        noun = "1 text has" if self.texts == 1 else f"{self.texts:,} texts have"
        return (
            f"{noun} entities or tags of HTML, such as {_cut(markup)} of {name_of(place)}: their names "
            "and numbers are compared as words; decode them first, in Python with html.unescape()"
        )


def similar_scopes_note(groups: Sequence[Sequence[str]]) -> str:
    number = sum(map(len, groups))
    names = " and ".join(json.dumps(scope, ensure_ascii=False) for scope in groups[0][:2])
    return (
        f"{number:,} scopes differ from others only in case, spaces or encoding, such as {names}; their "
        "documents are not compared with each other"
    )


_SHOWN_RUNS = 3
_SHOWN_CHARACTERS = 40


def _example_lines(examples: list[Example], name_of: Callable[[AnyDocument], str]) -> Iterator[str]:
    from textsim_db.measures.word_diff import Change
    from textsim_db.text.distinctions import symbols

    for (removed, kept, similarity), diff, *_ in examples:
        differ = [_of_run(run) for run in diff if run.change != Change.SAME]
        differ = differ or [_of_run(run) for run in diff if symbols(run.a) != symbols(run.b)]
        more = [f"{len(differ) - _SHOWN_RUNS} more"] if len(differ) > _SHOWN_RUNS else []
        what = "; ".join(differ[:_SHOWN_RUNS] + more) or "has the same words"
        yield f"  {similarity:.4f}  {name_of(removed)} {what} (kept: {name_of(kept)})"


def _of_run(run: DiffRun) -> str:
    """Say how the removed document differs from the kept one, run.a."""
    from textsim_db.measures.word_diff import Change

    kept, removed = (f'"{_cut(words.strip())}"' for words in (run.a, run.b))
    if run.change == Change.REMOVED:
        return f"lacks {kept}"
    return f"adds {removed}" if run.change == Change.ADDED else f"has {removed} for {kept}"


def _cut(words: str) -> str:
    return words if len(words) <= _SHOWN_CHARACTERS else f"{words[: _SHOWN_CHARACTERS - 3]}..."


class AdditionFile:
    """The file with the result of the last run that added documents."""

    def __init__(self, path: str, inputs: Sequence[str], arguments: Sequence[object]) -> None:
        """Name the file and the run, which depends on the content of the inputs and on the arguments."""
        self.path = path
        self._run = _digest(inputs, arguments)

    def read(self) -> Deduplication | None:
        """Return the result of an earlier run with the same records and arguments, None without one.

        Raises InputError if the earlier run had others.
        """
        from textsim_db.dedupe.removal_summary import StoredDocument
        from textsim_db.dedupe.removals import Deduplication

        try:
            with open(self.path, "rb") as file:
                content = json.load(file)
        except FileNotFoundError:
            return None
        if content["run"] != self._run:
            raise InputError(
                f"{shown(self.path)} is of a run with other records or options, whose output would be "
                "lost; choose another output, or remove that file"
            )
        return Deduplication(
            documents=content["documents"],
            removals=[*map(_read_removal, content["removals"])],
            refused=[(number, reason) for number, reason in content["refused"]],
            without_words=content["without_words"],
            sizes={StoredDocument(*document): size for document, size in content["sizes"]},
            also_kept=[*map(_read_removal, content["also_kept"])],
            recounted=content["recounted"],
        )

    def write(self, result: Deduplication) -> None:
        """Write the result, whole or not at all."""
        content = {
            "run": self._run,
            "documents": result.documents,
            "removals": result.removals,
            "refused": result.refused,
            "without_words": result.without_words,
            "sizes": [*result.sizes.items()],
            "also_kept": result.also_kept,
            "recounted": result.recounted,
        }
        with replacing(self.path) as file:
            file.write(json.dumps(content).encode())


def _read_removal(removal: tuple[int, Any, float]) -> Removal:
    from textsim_db.dedupe.removal_summary import Removal, StoredDocument

    number, kept, similarity = removal
    return Removal(number, kept if isinstance(kept, int) else StoredDocument(*kept), similarity)


def _digest(paths: Sequence[str], arguments: Sequence[object]) -> str:
    digest = hashlib.sha256(json.dumps(arguments).encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
