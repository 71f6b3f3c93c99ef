"""Documents from files, good and bad; no database."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Textsim
from textsim_db.files import file_kinds, judgement_files, read_documents
from textsim_db.files.file_kinds import FileFormat, Kind, Quote
from textsim_db.files.read_documents import Inputs, read_text
from textsim_db.results import Refusal

Read = Callable[..., tuple[list[Any], list[Refusal]]]
ENCODING = "give the encoding of the file with --encoding, such as cp1252, or convert it to UTF-8"


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    monkeypatch.chdir(tmp_path)

    def documents(*paths: str, **options: Any) -> tuple[list[Any], list[Refusal]]:
        refused: list[Refusal] = []
        named = [name for name in FileFormat._fields if name in options]
        form = FileFormat(**{name: options.pop(name) for name in named})
        return list(Inputs(paths, refused.append, form, **options)), refused

    return documents


def test_text_file_is_one_document_whose_key_is_its_path(read: Read) -> None:
    Path("folder").mkdir()
    Path("folder/a.txt").write_bytes("naïve\r\ntext".encode())
    assert read("folder/a.txt") == ([("folder/a.txt", "naïve\r\ntext")], [])
    assert read("./folder/a.txt")[0][0][0] == "./folder/a.txt"


def test_folders_in_order_without_hidden_files(read: Read) -> None:
    for name in ("d/b.txt", "d/a.md", "d/sub/c.txt", "d/.git/x.txt", "d/.hidden.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    assert [key for key, _ in read("d")[0]] == ["d/a.md", "d/b.txt", "d/sub/c.txt"]
    assert [key for key, _ in read("d", glob="*.txt")[0]] == ["d/b.txt", "d/sub/c.txt"]
    assert [key for key, _ in read("d/", glob="sub/*.txt")[0]] == ["d/sub/c.txt"]
    assert read("d", glob="*.py") == ([], [Refusal("d", 'no file in this folder matches "*.py"')])


def test_a_broken_link_in_a_folder_is_refused(read: Read) -> None:
    Path("d").mkdir()
    Path("d/link.txt").symlink_to("nowhere")
    assert read("d") == ([], [Refusal("d/link.txt", "cannot be read: No such file or directory")])


def test_json_lines(read: Read) -> None:
    lines = [b'\xef\xbb\xbf{"id": 7, "text": "a", "more": []}', b"", b'{"id": "k", "text": ""}\r']
    Path("a.jsonl").write_bytes(b"\n".join(lines))
    assert read("a.jsonl") == ([("7", "a"), ("k", "")], [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "malformed JSON at character 2: Expecting property name enclosed in double quotes"),
        (b"[1]", "the line is an array; expected a JSON object"),
        (b'"id"', "the line is a string; expected a JSON object"),
        (b'{"text": "t"}', 'there is no member "id"; found "text": name another with --key'),
        (b"{}", 'there is no member "id"; found none: name another with --key'),
        (
            b'{"id": 1, "text": "a", "text": "b", "x": {}}',
            'malformed JSON: 2 members are named "text"; found "id", "text", "text", "x": rename all '
            "but one",
        ),
        (b'{"id": "k"}', 'there is no member "text"; found "id": name another with --text'),
        (b'{"id": true, "text": "t"}', '"id" is true; expected a string or a whole number'),
        (b'{"id": 1.5, "text": "t"}', '"id" is 1.5; expected a string or a whole number'),
        (b'{"id": null, "text": "t"}', '"id" is null; expected a string or a whole number'),
        (b'{"id": {}, "text": "t"}', '"id" is an object; expected a string or a whole number'),
        (b'{"id": 1, "text": 2}', '"text" is a number; expected a string'),
        (b'{"id": 1, "text": null}', '"text" is null; expected a string'),
        (
            b'{"id": 1, "text": "\xff"}',
            f'"text" is not UTF-8: byte 0xff at character 1; {ENCODING}',
        ),
    ],
)
def test_a_bad_json_line_is_refused_others_are_read(line: bytes, reason: str, read: Read) -> None:
    good = b'{"id": "k", "text": "t", "x": {"text": "text", "id": "id"}}'
    Path("a.jsonl").write_bytes(b"\n".join([good, b"", line, good]))
    documents, refused = read("a.jsonl")
    assert documents == [("k", "t")] * 2
    assert refused == [Refusal("a.jsonl, line 3", reason)]


def test_the_header_shows_the_separator(read: Read) -> None:
    for name, content in [
        ("a.csv", 'id;text;price\n1;a, b;12,50\n2;"c;\nd";3\n'),
        ("a.csv", '\ufeff"id";"text"\n"1";"a, b"\n"2";"c;\nd"\n'),
        ("a.csv", '"id"\t"a text, or two;"\ttext\n1\t\ta, b\n2\t\t"c;\nd"\n'),
        ("a.tsv", '"id","text"\n"1","a, b"\n"2","c;\nd"\n'),
        ("a.csv", '\ufeffid|text\n1|a, b\n2|"c;\nd"\n'),
        ("a.csv", 'id\ttext\n1\ta, b\n2\t"c;\nd"\n'),
        ("a.tsv", 'id,text\n1,"a, b"\n2,"c;\nd"\n'),
        ("a.csv", 'sep=;\r\nid;text\n1;a, b\n2;"c;\nd"\n'),
        ("a.csv", '\ufeffsep=,\nid,text\n1,"a, b"\n2,"c;\nd"\n'),
        ("a.csv", 'a\u2028b;id;text\n;1;a, b\n;2;"c;\nd"\n'),
        ("a.csv", 'sep=#\nid#text\n1#a, b\n2#"c;\nd"\n'),
    ]:
        Path(name).write_text(content + "x\n", encoding="utf-8", newline="")
        documents, (refusal,) = read(name)
        assert documents == [("1", "a, b"), ("2", "c;\nd")], content
        assert refusal.key == f"{name}, line {content.count(chr(10)) + 1}", content


UNQUOTED = "; if quotation marks mean nothing in this file, give --quote none"


def test_quotation_marks_join_no_records_without_a_word(read: Read) -> None:
    joined = f"one record of the lines {{}} to {{}}: quotation marks join them{UNQUOTED}"
    joined += "; if they are right, --quote doubled"
    lines = ['1\t"Winter" is cold', '2\t"a long day', "3\tb", '4\tc"', '5\t"d', '6\te"', "7\tf"]
    Path("a.tsv").write_text("\n".join(["id\ttext", *lines]) + "\n")
    documents, refused = read("a.tsv")
    assert documents == [("7", "f")]
    assert refused == [
        Refusal("a.tsv, line 2", f"malformed TSV: '\t' expected after '\"'{UNQUOTED}"),
        Refusal("a.tsv, line 3", joined.format(3, 5)),
        Refusal("a.tsv, line 6", joined.format(6, 7)),
    ]
    expected = [tuple(line.split("\t")) for line in lines]
    assert read("a.tsv", quote=Quote.NONE) == (expected, [])
    # Without the guess, a long text of several lines would be refused in the last three.
    for header, record, swallows in [
        ("id,text", '1,"a\n2,b"', True),
        ("id,text,more", 'a-1,"a,x\na-22,b",y', True),
        ("id;text", '1;"a\n2;b"', True),
        ("id,text", '1,"Sir\nThanks, bye"', False),
        ("id,text", '1,"a list:\n2, eggs, milk"', False),
        ("text", '"a\nb"', False),
    ]:
        Path("a.csv").write_text(f"{header}\n{record}\n")
        keys = ["id" if "id" in header else "text"]
        documents, refused = read("a.csv", keys=keys)
        assert len(documents) == (not swallows), record
        assert [each.reason for each in refused] == [joined.format(2, 3)] * swallows
        assert len(read("a.csv", keys=keys, quote=Quote.DOUBLED)[0]) == 1
    Path("b.tsv").write_text('id\ttext\n1\ta\n2\t"b\n3\tc\n')
    reason = f"from line 3 on: a quotation mark is not closed{UNQUOTED}"
    assert read("b.tsv") == ([("1", "a")], [Refusal("b.tsv", reason)])


def test_stray_quotation_marks_swallow_no_line(read: Read, rng: Any) -> None:
    for _ in range(300):
        separator, columns = rng.choice(",;\t"), rng.randrange(1, 3)
        texts = ["".join(rng.choices(["a ", "b", '"'], k=5)) for _ in range(rng.randrange(2, 20))]
        rows = [[str(i), *texts[i : i + columns]] for i in range(len(texts) - columns)]
        lines = [separator.join(row) for row in [["id", "text", "x"][: columns + 1], *rows]]
        Path("a.csv").write_text("\n".join(lines))
        documents, refused = read("a.csv", separator=separator)
        named = {int(key) + 2 for key, _ in documents}
        for key, reason in refused:
            found = {int(n) for n in re.findall(r"(?:lines?|to) (\d+)", f"{key}, {reason}")}
            last = len(lines) if reason.startswith("from line") else max(found)
            named |= set(range(min(found), last + 1))
        assert named == set(range(2, len(lines) + 1)), lines


def test_csv_of_other_programs_is_refused_with_the_way_out(read: Read, textsim: Textsim) -> None:
    for lines, reason in [
        (rb'1,"the \"old\" one"', "give --quote backslash"),
        (b"1,a\rb", r"malformed CSV: a value has a carriage return; remove it, with tr -d '\r'"),
        (b'1,"a\nb"c', "one record of the lines 2 to 3: malformed CSV: ',' expected"),
        (b'1,"a\nb",c', "one record of the lines 2 to 3: the record has 3 columns, but the"),
        (b"1", "the record has 1 columns, but the header has 2"),
        (b'1,"a\n\xff"', '"text" is not UTF-8: byte 0xff at character 3; '),
        (b"id,text", "the line names the columns again, as if files were joined"),
        (b"\xef\xbb\xbfid,text", "the line names the columns again"),
        (b'\xef\xbb\xbf"id","text"', "the line names the columns again"),
        (b"text,id", "the line names the columns again"),
    ]:
        Path("a.csv").write_bytes(b"id,text\n" + lines + b"\n2,good\n")
        documents, (refusal,) = read("a.csv")
        assert documents == [("2", "good")], lines
        assert reason in refusal.reason, lines
    forms: list[tuple[bytes, dict[str, Any]]] = [
        (rb'1,"the \"old\" ""one"" \\, 2"', {"quote": Quote.BACKSLASH}),
        (rb'1:the "old" "one" \, 2', {"quote": Quote.NONE, "separator": ":"}),
    ]
    for content, form in forms:
        header = b"id:text\n" if "separator" in form else b"id,text\n"
        Path("a.csv").write_bytes(header + content)
        assert read("a.csv", **form) == ([("1", r'the "old" "one" \, 2')], []), content
    textsim("dedupe", "a.csv", "-o", "out.csv", "--quote", "none", "--separator", ":")
    assert Path("out.csv").read_bytes() == Path("a.csv").read_bytes()
    Path("a.csv").write_text("text\ntext\n")
    assert read("a.csv", keys=["text"])[0] == [("text", "text")]
    joined = '{"id": 1, "text": "a"}\n\ufeff{"id": 2, "text": "b"}\n'
    Path("a.jsonl").write_text(joined, encoding="utf-8")
    assert read("a.jsonl")[0] == [("1", "a"), ("2", "b")]


def test_nested_members_by_path(read: Read, textsim: Textsim) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    row = {"id": 1, "turns": [{"by": "u", "text": "a"}, {"by": "v", "text": "b"}], "x": {"no": 7}}
    Path("a.jsonl").write_text(json.dumps(row | {"x.y": "dot", "x": {"no": 7, "y": "c"}}))
    parquet.write_table(pyarrow.Table.from_pylist([row, {"id": 2}]), "a.parquet")
    for text, expected in [
        ("turns.0.text", "a"),
        ("turns.-1.text", "b"),
        ("x.y", "dot"),
        ("turns.2.text", 'there is no member "turns.2.text"; found "id", "turns", "x"'),
        (
            "turns.0",
            '"turns.0" is an object; expected a string: name a part of it, such as turns.0.by',
        ),
        ("turns", '"turns" is an array; expected a string: name a part of it, such as turns.0'),
        ("x.no.z", 'there is no member "x.no.z"'),
    ]:
        documents, refused = read("a.jsonl", text=text, keys=["x.no"])
        told = [*documents, *(r.reason[: len(expected)] for r in refused)]
        assert told in ([("7", expected)], [expected])
    assert read("a.parquet", text="turns.0.text")[0] == [("1", "a")]
    assert "a column of list<" in read("a.parquet", text="turns")[1][0].reason
    for name in ("a.jsonl", "a.parquet"):
        options = ("--text", "turns.0.text", "--key", "x.no", "--scope", "turns.0.by")
        command = ("dedupe", name, "-o", "o.jsonl", "--keep", "max:x.no", "--drop-faulty")
        assert ": 1 kept, " in textsim(*command, *options, status=None).stderr
        name_of_corpus = name.replace(".", "")
        result = textsim("index", name_of_corpus, name, "--create", *options, status=None)
        assert "1 added" in result.stderr


def test_parquet_texts_without_annotation(read: Read) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    for kind in (pyarrow.binary(), pyarrow.large_binary()):
        column = pyarrow.array([b"\xc3\xa9", b"\xff\0", None], kind)
        keys = pyarrow.array([b"1", b"2", b"3"], kind)
        parquet.write_table(pyarrow.table({"id": keys, "text": column}), "a.parquet")
        documents, refused = read("a.parquet")
        assert documents == [("1", "é")]
        assert [each.reason[:14] for each in refused] == ["not UTF-8: byt", '"text" is null']


def test_parquet(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = pyarrow.table({"id": [1, 2, None], "text": ["a", None, "c"], "more": [[1], None, []]})
    parquet.write_table(table, "a.parquet")
    data = Path("a.parquet").read_bytes()
    Path("b.pq.gz").write_bytes(gzip.compress(data))
    refused = [("row 2", '"text" is null; expected a string')]
    refused.append(("row 3", '"id" is null; expected a string or a whole number'))
    for name in ("a.parquet", "b.pq.gz"):
        documents, found = read(name)
        assert documents == [("1", "a")]
        assert found == [Refusal(f"{name}, {place}", reason) for place, reason in refused]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
    assert read("-", kind=Kind.PARQUET)[0] == [("1", "a")]
    parquet.write_table(pyarrow.table({"a": ["x"], "b": ["y"], "verdict": ["same"]}), "j.parquet")
    assert judgement_files.read_judgements("j.parquet")[0][:3] == ("x", "y", "same")
    for columns, reason in [
        ({"id": [1], "text": [5]}, '"text" is a column of int64; expected a column of strings'),
        ({"id": [1], "texts": ["a"]}, 'there is no column "text"; found "id", "texts": name an'),
    ]:
        parquet.write_table(pyarrow.table(columns), "c.parquet")
        (refusal,) = read("c.parquet")[1]
        assert refusal.reason.startswith(reason)


def test_two_columns_of_one_name(read: Read) -> None:
    Path("a.csv").write_text("id,text,text,x,x\n1,a,b,c,d\n")
    (refusal,) = read("a.csv")[1]
    assert refusal.reason == (
        '2 columns are named "text"; found "id", "text", "text", "x", "x": rename all but one, or name '
        "another with --text"
    )
    Path("b.csv").write_text("id,text,x,x\n1,a,c,d\n")
    assert read("b.csv")[0] == [("1", "a")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *(
            (
                "id,text\n1,a".encode(name),
                f"{name}, not UTF-8: give --encoding {name}, or convert it: iconv",
            )
            for name in ("UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32")
        ),
        (b"\x04\x22\x4d\x18...", "compressed with LZ4; unpack it first, with lz4 -d "),
        (b"PAR1...", "Parquet; give it a name that ends in .parquet, or --kind parquet"),
        (b"PK\x03\x04...", "a ZIP archive, such as an Excel workbook; unpack it"),
        (b"\xd0\xcf\x11\xe0...", "an old Office file, such as an Excel workbook; save it"),
        (b"%PDF-1.7", "PDF; make a text of it, for example with pdftotext "),
    ],
)
def test_files_of_another_encoding_are_named(content: bytes, reason: str, read: Read) -> None:
    for name in ("a.csv", "a.jsonl", "a.txt", "a.tsv.gz"):
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        (refusal,) = read(name)[1]
        assert refusal.reason.startswith(f"the file is {reason}")


ARRAY = b'[\n {"id": 1, "text": "a"},\n {"id": 2, "text": "b"}\n]'
LINES = b'{"id": 1, "text": "\xc3\xa9"}\n{"id": 2, "text": "b"}\n'
OBJECT = b'{\n  "id": 1,\n  "text": "a"\n}'


def test_json_read_as_another_kind_is_refused_with_a_command(read: Read, textsim: Textsim) -> None:
    array, lines, cr = "jq -c '.[]' {} > NEW.jsonl", "--kind jsonl", "tr '\\r' '\\n' < {} > NEW"
    for name, content, way_out in [
        ("a.json", ARRAY, array),
        ("a.json", OBJECT, "jq -c . {} > NEW.jsonl"),
        ("a", LINES, lines),
        ("a.json.gz", ARRAY, array),
        ("a.txt", LINES, lines),
        ("a.csv", b"\xef\xbb\xbf" + LINES, lines),
        ("a.jsonl", ARRAY, array),
        ("a.jsonl", b"\xef\xbb\xbf" + ARRAY.replace(b"\n", b""), array),
        ("a.jsonl", OBJECT, "jq -c . {} > NEW.jsonl"),
        ("a.parquet", LINES, lines),
        ("a b.csv", b"id,text\r1,a\r2,b", cr),
        ("a.tsv", b"id\ttext\r1\ta\r", cr),
        ("a.jsonl", LINES.replace(b"\n", b"\r"), cr),
        ("-a.jsonl", b"\x04\x22\x4d\x18...", "lz4 -d {}"),
    ]:
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        file = f"<(gzip -dc {name})" if name.endswith(".gz") else shlex.quote(name)
        documents, (refusal,) = read(name)
        assert way_out.format(file) in refusal.reason, (name, content)
        assert documents == []
        result = textsim("dedupe", "-o", "out.jsonl", "--", name, status=2)
        assert way_out.format(file) in result.stderr, (name, content)
        Path(name).unlink()
    Path("a.json").write_bytes(LINES)
    assert read("a.json", kind=Kind.TEXT) == ([("a.json", LINES.decode())], [])
    Path("a.json.gz").write_bytes(gzip.compress(LINES))
    assert [key for key, _ in read("a.json", "a.json.gz")[0]] == ["1", "2"] * 2
    assert read_text("a.json") == LINES.decode()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "a.csv",
            b"key,a;b\n",
            'there is no column "id"; found "key", "a;b": name another with --key; if another character '
            "separates the columns, name it with --separator",
        ),
        (
            "a.csv",
            b"id,a,b,c,d,e,f,g,h\n",
            'there is no column "text"; found "id", "a", "b", "c", "d", "e", "f", "g", ...: '
            "name another with --text",
        ),
        (
            "a.csv",
            b"id:text\n",
            'there is no column "id"; found "id:text": name another with --key; '
            "if another character separates the columns, name it with --separator",
        ),
        ("a.csv", b"", "the file is empty; expected a first line with the names of the columns"),
        ("a.csv", b"\xff\n1,a\n", f"not UTF-8: byte 0xff at offset 0; {ENCODING}"),
        ("a.txt", b"abc\xe9", "not UTF-8: byte 0xe9 at offset 3; convert it to UTF-8"),
        ("a.txt.gz", b"abc", "no gzip file, or damaged: Not a gzipped file (b'ab')"),
    ],
)
def test_an_unreadable_file_is_refused(name: str, content: bytes, reason: str, read: Read) -> None:
    Path("good.txt").write_text("t")
    Path(name).write_bytes(content)
    assert read(name, "good.txt") == ([("good.txt", "t")], [Refusal(name, reason)])


def test_packed_files(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": lambda data: pyarrow.compress(data, codec="zstd", asbytes=True),
    }
    contents = {"a.txt": b"t", "b.JSONL": LINES[:24], "c.csv": b"id,text\n1,\xc3\xa9", "d": b"t"}
    for ending, pack in packers.items():
        # The content has two frames; a file of another name is known by its first bytes.
        names = [f"{name}.{ending}" if name != "d" else name for name in contents]
        for name, content in zip(names, contents.values(), strict=True):
            Path(name).write_bytes(pack(content[:10]) + pack(content[10:]))
        expected = [(names[0], "t"), ("1", "é"), ("1", "é"), ("d", "t")]
        assert read(*names) == (expected, []), ending
        packed = pack(LINES)
        for damaged, reason in [
            (packed[:-3], "file ends too early; only the part before its end was read"),
            (packed[:20] + b"x" * 20 + packed[40:], "file, or damaged: "),
            (b"no packed file", "file, or damaged: "),
        ]:
            Path(f"e.jsonl.{ending}").write_bytes(damaged)
            assert reason in read(f"e.jsonl.{ending}")[1][-1].reason, (ending, reason)
    Path("a.csv.zst").write_bytes(packers["zst"](b"id,text\n"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "which needs PyArrow: pip install" in read("a.csv.zst")[1][0].reason


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (lambda data: gzip.compress(data)[:-3], "the gzip file ends too early; only the part be"),
        (lambda data: gzip.compress(data)[:-8] + bytes(8), "no gzip file, or damaged: CRC"),
        (lambda data: gzip.compress(data) + b"garbage", "no gzip file, or damaged: Not a"),
        (lambda data: gzip.compress(data) + b"\x1f\x8b", "the gzip file ends too early"),
        (lambda data: gzip.compress(data) + bytes(99), None),  # tapes pad files with zeros
        (lambda data: gzip.compress(data) * 2, None),
    ],
)
def test_whole_lines_before_the_damage_are_read(
    packed: Callable[[bytes], bytes], reason: str | None, read: Read
) -> None:
    lines = b'{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n'
    Path("a.jsonl.gz").write_bytes(packed(lines))
    documents, refused = read("a.jsonl.gz")
    assert documents[:2] == [("1", "a"), ("2", "b")]
    assert [refusal.key for refusal in refused] == (["a.jsonl.gz"] if reason else [])
    assert all(refusal.reason.startswith(str(reason)) for refusal in refused)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": ' * 100_000 + b"}" * 100_000, "malformed JSON: it is nested too deeply"),
        (b"[" * 10**6 + b"]" * 10**6, "malformed JSON: it is nested too deeply"),
        (b'{"id": 1e999, "text": "t"}', '"id" is Infinity; expected a string or a whole number'),
        (b'{"id": NaN, "text": "t"}', '"id" is NaN; expected a string or a whole number'),
        (b'{"id": 1, "text": "a\0b"}', "malformed JSON at character 21: Invalid control character"),
        (b"\0\0", "malformed JSON at character 1: Expecting value"),
        (b'{"id": ' + b"1" * 5000 + b', "text": "t"}', "malformed JSON"),
        ("{}".encode("utf-16"), f"not UTF-8: byte 0xff at offset 0; {ENCODING}"),
        (
            rb'{"\u001b[31m\n\u202e\ud800": 1}',
            r'there is no member "id"; found "\x1b[31m\n\u202e\ud800": name another with --key',
        ),
    ],
)
def test_hostile_json_lines(line: bytes, reason: str, read: Read) -> None:
    Path("a.jsonl").write_bytes(b'{"id": 1, "text": "t"}\n' + line)
    documents, refused = read("a.jsonl")
    assert documents == [("1", "t")]
    assert refused[0].key == "a.jsonl, line 2"
    assert refused[0].reason.startswith(reason)
    assert "\n" not in refused[0].reason


def test_devices_and_folders(read: Read) -> None:
    assert read("/dev/null") == ([("/dev/null", "")], [])
    assert read("/dev/null", kind=Kind.JSONL) == ([], [])
    key, reason = read("/proc/self/mem")[1][0]
    assert (key, reason) == ("/proc/self/mem", "cannot be read: Input/output error")
    Path("folder.jsonl").mkdir()
    assert read("folder.jsonl")[1][0].reason == 'no file in this folder matches "*"'


def test_a_file_that_is_cut_while_it_is_read(read: Read) -> None:
    line = b'{"id": 1, "text": "t"}\n'
    Path("a.jsonl").write_bytes(line * 100_000)
    refused: list[Refusal] = []
    documents = iter(Inputs(["a.jsonl"], refused.append))
    next(documents)
    with Path("a.jsonl").open("r+b") as file:
        file.truncate(len(line) * 50_000 + 7)
    assert len(list(documents)) == 49_999
    assert [refusal.key for refusal in refused] == ["a.jsonl, line 50001"]


def test_standard_input(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    given(b'{"id": 1, "text": "t"}\n{')
    documents, refused = read("-")
    assert documents == [("1", "t")]
    assert refused[0].key == "standard input, line 2"
    given(b"id,text\n1,t\n")
    assert read("-", kind=Kind.CSV)[0] == [("1", "t")]
    given(b"some text")
    assert read("-", kind=Kind.TEXT)[0] == [("-", "some text")]
    given(b"some text")
    assert read_text("-") == "some text"
    given(gzip.compress(b'{"id": 1, "text": "t"}'))
    assert read("-") == ([("1", "t")], [])
    given(gzip.compress(b"some text"))
    assert read_text("-") == "some text"
    given(b"")
    assert read("-") == ([], [])


def test_long_lines_and_files_are_refused(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_kinds, "MAX_LINE", 40)
    monkeypatch.setattr(read_documents, "MAX_BYTES", 20)
    good = '{"id": 1, "text": "t"}'
    Path("a.jsonl").write_text(f"{good}\n{{{' ' * 200}\n{good}")
    Path("a.csv").write_text(f"id,text\n1,t\n2,{'x' * 50}\n")
    Path("a.txt").write_text("x" * 21)
    documents, refused = read("a.jsonl", "a.csv", "a.txt")
    assert documents == [("1", "t")] * 3
    assert refused == [
        Refusal("a.jsonl, line 2", "the line is longer than 40 bytes"),
        Refusal("a.csv", "from line 3 on: line 3 is longer than 40 bytes"),
        Refusal("a.txt", "the file is larger than 20 bytes, the limit for a text; split the file"),
    ]


def test_bytes_read_reach_the_total(read: Read) -> None:
    Path("d").mkdir()
    Path("d/a.txt").write_text("12345")
    Path("b.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1, "text": "t"}'))
    found = Inputs(["d", "b.jsonl.gz", "missing"], lambda refusal: None)
    total = found.total_bytes()
    assert total == 5 + Path("b.jsonl.gz").stat().st_size
    assert found.bytes_read == 0
    assert len(list(found)) == 2
    assert found.bytes_read == total
    assert Inputs(["d", "-"], lambda refusal: None).total_bytes() is None
