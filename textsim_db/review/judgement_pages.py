"""The page of judgements: who said what, and files of judgements out and in."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import HTTP
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.errors import InputError, shown
from textsim_db.files.judgement_files import FORMULAS, GUARDED, read_judgements
from textsim_db.results import Judgement
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.site import ON_A_PAGE, Site, body_of, see, whole_number

_MOST_FILE_BYTES = 20_000_000
"""The bytes of a file of judgements."""
_KINDS = (".csv", ".tsv", ".jsonl")
_MOST_FIELDS = 10
"""The fields of the form that are read; it has two."""
_MOST_HEAD_BYTES = 10_000
"""The bytes of the head of a field."""


class JudgementPages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def judgements(self, request: Request, pairs: Pairs) -> Response:
        start = whole_number(request.query_params.get("start"))
        ordered = sorted(
            self._site.judging.all().values(), key=lambda each: each.judged_at, reverse=True
        )
        more = start + ON_A_PAGE
        return self._site.render(
            "judgements.html",
            judgements=ordered[start:more],
            total=len(ordered),
            start=start,
            more=more if more < len(ordered) else None,
            imported=whole_number(request.query_params.get("imported")),
            is_imported="imported" in request.query_params,
        )

    def csv(self, request: Request) -> Response:
        """Return all judgements as CSV for a spreadsheet, which runs no cell of it as a formula.

        A cell that begins like a formula has an apostrophe before it, and the last column names it, so
        read_judgements() reads the cell as it was.
        """
        text = io.StringIO()
        # A spreadsheet that separates by semicolons would cut a cell without quotes.
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow([*Judgement._fields, GUARDED])
        for values in self._values():
            cells = {
                name: "" if value is None else str(value)
                for name, value in zip(Judgement._fields, values, strict=True)
            }
            guarded = [name for name, cell in cells.items() if cell.startswith(FORMULAS)]
            cells |= {name: f"'{cells[name]}" for name in guarded}
            writer.writerow([*cells.values(), " ".join(guarded)])
        return _file(text.getvalue(), "judgements.csv", "text/csv")

    def json_lines(self, request: Request) -> Response:
        lines = [
            json.dumps(dict(zip(Judgement._fields, values, strict=True))) + "\n"
            for values in self._values()
        ]
        return _file("".join(lines), "judgements.jsonl", "application/x-ndjson")

    async def take_in(self, request: Request) -> Response:
        kind = request.headers.get("content-type", "")
        body = await body_of(request, _MOST_FILE_BYTES)
        return await run_in_threadpool(self._take_in, kind, body)

    def _take_in(self, content_type: str, body: bytes) -> Response:
        self._site.check_writable()
        fields = _form_fields(content_type, body)
        name, data = fields.get("file", ("", b""))
        ending = Path(name).suffix.lower()
        if ending not in _KINDS:
            raise HTTPException(400, f"choose a file that ends in {', '.join(_KINDS)}")
        with tempfile.TemporaryDirectory(prefix="textsim-") as folder:
            path = Path(folder, f"judgements{ending}")
            path.write_bytes(data)
            try:
                given = read_judgements(str(path))
            except InputError as error:
                message = str(error).replace(str(path), shown(name))
                raise HTTPException(400, message) from error
        new = self._site.reviewed.judgement_store.judge_many(
            [judgement[:7] for judgement in given],
            "replace" in fields,
            place_of=lambda i: given[i].place.rpartition("/")[2],
        )
        return see("judgements", imported=new)

    def _values(self) -> list[tuple[str | float | None, ...]]:
        return [
            (*judgement[:4], judgement.judged_at.isoformat(), *judgement[5:])
            for _, judgement in sorted(self._site.judging.all().items())
        ]


def _form_fields(content_type: str, body: bytes) -> dict[str, tuple[str, bytes]]:
    """Return the file name and the contents of each field of a form with files.

    RFC 7578. A field is cut out as bytes: a reader of mail would also read fields inside of a field.
    """
    boundary = _header(f"Content-Type: {content_type}".encode("latin-1", "replace")).get_boundary()
    if not content_type.startswith("multipart/form-data") or not boundary:
        raise HTTPException(400, "the form has no file")
    fields = {}
    pieces = (b"\r\n" + body).split(f"\r\n--{boundary}".encode("latin-1", "replace"), _MOST_FIELDS)
    for piece in pieces[1:]:
        head, _, data = piece.partition(b"\r\n\r\n")
        header = _header(head[:_MOST_HEAD_BYTES].lstrip())
        name = header.get_param("name", header="content-disposition")
        if isinstance(name, str):
            fields[name] = header.get_filename() or "", data
    return fields


def _header(head: bytes) -> EmailMessage:
    return BytesHeaderParser(policy=HTTP).parsebytes(head + b"\r\n\r\n")


def _file(text: str, name: str, kind: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    # A lone surrogate, which a note of a file may have, is no UTF-8.
    return Response(text.encode("utf-8", "replace"), media_type=kind, headers=headers)
