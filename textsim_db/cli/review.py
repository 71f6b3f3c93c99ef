"""textsim review: the pairs and clusters of a corpus in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import print_message
from textsim_db.cli.options import (
    CorpusName,
    DatabaseUrl,
    Threshold,
    check_port,
    needs_extra,
    whole_number_option,
)


def review(
    corpus: CorpusName,
    threshold: Threshold = None,
    port: Annotated[int, whole_number_option("Listen on this port; 0 is any free port.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser; open the address yourself.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, and record no judgement.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Look at the pairs and clusters of a corpus in a browser, and judge them.

    It prints the address of the pages, which only this machine can open, and serves them until you
    press Ctrl-C. With the address anybody can judge under your name: do not pass it on.

    Examples:
    - `textsim review news`
    - `textsim review news --threshold 0.6 --no-browser --port 8080`

    """
    check_port(port, "--port")
    with needs_extra("review", "the pages need Starlette, Jinja and Uvicorn"):
        from textsim_db.review.pages import Review
        from textsim_db.review.server import serve

    def show(address: str) -> None:
        typer.echo(address)
        print_message("press Ctrl-C to end")

    with connect(database_url) as db:
        opened = Review(db.corpus(corpus), threshold, read_only)
        opened.survey.start()
        try:
            serve(opened.app(), port, not no_browser, show)
        finally:
            opened.survey.stop()
    print_message("ended")
