"""The page of judgements: who said what, and files of judgements out and in."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.errors import InputError
from textsim_db.files.judgement_files import FORMULAS, GUARDED, read_judgements
from textsim_db.results import Judgement
from textsim_db.results.shown_values import shown
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.site import ON_A_PAGE, Site, see, whole_number

_KINDS = (".csv", ".tsv", ".jsonl")


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
        self._site.check_writable()
        async with request.form(max_files=1, max_fields=2) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise HTTPException(400, "the form has no file")
            data = await file.read()
            return await run_in_threadpool(
                self._take_in, file.filename or "", data, "replace" in form
            )

    def _take_in(self, name: str, data: bytes, replace: bool) -> Response:
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
        new = self._site.reviewed.judgement_store._judge_many(
            [judgement[:7] for judgement in given],
            replace,
            place_of=lambda i: given[i].place.rpartition("/")[2],
        )
        return see("judgements", imported=new)

    def _values(self) -> list[tuple[str | float | None, ...]]:
        return [
            (*judgement[:4], judgement.judged_at.isoformat(), *judgement[5:])
            for _, judgement in sorted(self._site.judging.all().items())
        ]


def _file(text: str, name: str, kind: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    # A lone surrogate, which a note of a file may have, is no UTF-8.
    return Response(text.encode("utf-8", "replace"), media_type=kind, headers=headers)
