"""textsim boilerplate, rebuild --boilerplate and clusters --inspect."""

from __future__ import annotations

import json

from tests.support.commands import Textsim, rows

HEADER = " ".join(f"head{i}" for i in range(30))


def test_boilerplate_is_listed_learned_and_left_out(textsim: Textsim) -> None:
    created = textsim("corpus", "create", "news", "--boilerplate", "0.5", "--threshold", "0.4")
    assert "boilerplate 0.5" in " ".join(created.stdout.split())
    assert "no boilerplate is learned yet" in created.stderr
    lines = [{"id": f"{n:03}", "text": f"{HEADER} {_body(n)}"} for n in range(150)]
    lines += [{"id": "nothing", "text": HEADER}]
    textsim("index", "news", "-", input="\n".join(map(json.dumps, lines)))
    listed = textsim("boilerplate", "news", "--share", "0.5", "--format", "jsonl", "--last", "30")
    assert rows(listed)[0]["shingle"] == "head0 head1 head2"
    assert len(rows(listed)) == 28
    assert "from a sample of 151 of 151 documents" in listed.stderr
    assert "clusters" not in rows(listed)[0]
    (held, *_) = rows(textsim("boilerplate", "news", "--clusters", "--format", "jsonl"))
    assert held["clusters"] == 1
    inspected = textsim("clusters", "news", "--inspect", "--format", "jsonl")
    (cluster,) = rows(inspected)
    assert cluster["size"] == 151
    assert cluster["held_by_template"] is True
    assert "1 of them held together by a template" in inspected.stderr
    rebuilt = textsim("rebuild", "news")
    assert "1 document without words, or of boilerplate alone, match" in rebuilt.stderr
    assert "nothing" in rebuilt.stderr
    assert rows(textsim("clusters", "news", "--format", "jsonl")) == []


def _body(number: int) -> str:
    return " ".join(f"w{number}x{k}" for k in range(20))
