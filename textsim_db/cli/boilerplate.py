"""textsim boilerplate: the shingles that many documents of a corpus share."""

from __future__ import annotations

from typing import Annotated

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import print_message
from textsim_db.cli.options import CorpusName, DatabaseUrl, number_option, positive_number_option
from textsim_db.cli.output import Format, FormatOption, write
from textsim_db.show.numbers import count


def boilerplate(
    corpus: CorpusName,
    share: Annotated[
        float, number_option("List shingles that more than this share of the texts has.")
    ] = 0.01,
    last: Annotated[
        int, positive_number_option("List at most this many shingles, the most frequent first.")
    ] = 20,
    clusters: Annotated[
        bool,
        typer.Option(
            "--clusters",
            help="Compute the clusters, and count those in which most members have the shingle. The "
            "clusters of a tracked corpus are always counted.",
        ),
    ] = False,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the shingles that many documents share, such as those of a header.

    It reads a sample of at most some 50,000 documents, and prints how many. Copies of one text count
    once. `textsim rebuild CORPUS --boilerplate 0.01` leaves such shingles out of all texts.

    Examples:
    - `textsim boilerplate news`
    - `textsim boilerplate news --share 0.1 --clusters`

    """
    with connect(database_url) as db:
        report = db.corpus(corpus).boilerplate(share, last, clusters)
    is_json, has_clusters = (
        form is Format.JSONL,
        any(e.clusters is not None for e in report.shingles),
    )
    rows = [
        (each.share, *[each.clusters] * has_clusters, each.text, _keys(each.keys, is_json))
        for each in report.shingles
    ]
    write(("share", *["clusters"] * has_clusters, "shingle", "keys"), rows, form)
    print_message(
        f"{count(len(report.shingles), 'shingle')} listed that more than {share:.4g} of "
        f"{count(report.texts, 'different text')} have, from a sample of {report.sampled:,} of "
        f"{count(report.documents, 'document')}"
    )


def _keys(keys: tuple[str, ...], is_json: bool) -> object:
    return keys if is_json else ", ".join(keys)
