"""A client of the pages, as a browser that was given the token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.testclient import TestClient

import textsim_db as ts
from textsim_db.review.corpus_documents import CorpusDocuments
from textsim_db.review.server import AccessCheck, Review
from textsim_db.review.survey import Reviewed

TOKEN = "the-token"
PORT = 8123
HOME = f"http://127.0.0.1:{PORT}"

Open = Callable[..., TestClient]


@pytest.fixture
def open_review() -> Iterator[Open]:
    """Return a function that opens a review when its pairs are read."""
    with ExitStack() as stack:

        def open_review(
            reviewed: ts.Corpus | Reviewed,
            threshold: float | None = None,
            read_only: bool = False,
            enter: bool = True,
            wait: bool = True,
        ) -> TestClient:
            if isinstance(reviewed, ts.Corpus):
                reviewed = CorpusDocuments(reviewed, threshold)
            review = Review(reviewed, read_only)
            review.survey.start()
            stack.callback(review.survey.stop)
            if wait:
                review.survey.wait()
            return TestClient(
                AccessCheck(review.app(), TOKEN, PORT),
                base_url=f"{HOME}/{TOKEN}" if enter else HOME,
                headers={"origin": HOME},
                raise_server_exceptions=True,
                follow_redirects=False,
            )

        yield open_review
