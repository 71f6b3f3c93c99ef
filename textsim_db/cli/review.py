"""textsim review: the pairs and clusters of a corpus in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import print_message
from textsim_db.cli.options import CorpusName, DatabaseUrl, Threshold, whole_number_option
from textsim_db.errors import ConfigurationError, install_extra

_LAST_PORT = 65535


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
    if not 0 <= port <= _LAST_PORT:
        raise typer.BadParameter(f"port {port} is out of range; expected 0 to {_LAST_PORT}")
    try:
        from textsim_db.review.pages import Review
        from textsim_db.review.server import serve
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the pages need Starlette, Jinja and Uvicorn: {install_extra('review')}"
        ) from error

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
