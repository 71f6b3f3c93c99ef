"""The texts of the Python reference: signatures, and docstrings as Markdown."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, Final

import textsim_db
from textsim_db import aio, errors, measures, results, spark, sql
from textsim_db.dedupe import dedupe_frame
from textsim_db.measures import explanation
from textsim_db.results import quotations, reports, rows
from textsim_db.sketch import plan_options
from textsim_db.sync import worker_state
from textsim_db.text import languages

MODULES: Final = {
    "": textsim_db,
    "results.": results,
    "measures.": measures,
    "spark.": spark,
    "aio.": aio,
    "sql.": sql,
}
CORPUS: Final = {
    "Begin with": "add_many remove query query_many neighbours pairs clusters duplicates attach rebuild",
    "Add": "add add_unique reject rejected",
    "Search": "nearest distinct candidates quote passages shared_passages regions "
    "characters contamination",
    "Group": "track update_clusters members cluster_events untrack split inspect_clusters",
    "Judge": "judge unjudge judgements doubtful differences explain",
    "Attach": "merge unmerge detach reconcile drift pending",
    "Keep": "expire forget check measure_recall",
    "Look inside": "status scopes keys normal_form statistics boilerplate",
}
"""The methods of a corpus in the order of the reference, in groups that say what one wants."""
PARTS: Final[dict[str, list[type]]] = {
    "Explanation": [explanation.PairDifferences],
    "Worker": [worker_state.WorkReport],
    "dedupe_frame": [dedupe_frame.FrameReport, dedupe_frame.RemovedRow],
    "identify_languages": [languages.Language],
    "plan": [plan_options.Option],
    "results.Boilerplate": [reports.SharedShingle],
    "results.InspectedCluster": [rows.Inspection],
    "results.PassageList": [rows.CommonRun],
    "results.Quotation": [quotations.QuotedPiece, quotations.QuotationDifference],
    "results.Statistics": [reports.Growth, reports.Frequency],
}
"""Classes of values inside a result, by the name with which the reference describes them."""
_SECTION = re.compile(r"^(Args|Raises|Examples):\n", re.MULTILINE)
_ENUM = re.compile(r"<\w+\.\w+: (.*?)>")
_SEVERAL: Final = 3
"""An argument or error that as many functions describe with the same words is described once."""
_SHARED_HEADING: Final = "Arguments and errors of several functions"
# An argument of a function begins with a small letter; a field of a class with a capital letter.
_FUNCTION_ITEM = re.compile(r"^- (?:`\w+` \(.*\): [a-z].*|raises .*)\n?", re.MULTILINE)
_EMPTY_LINES = re.compile(r"\n{3,}")
_ITEM = re.compile(r"^(?=\S)", re.MULTILINE)


def python_texts() -> dict[str, str]:
    """Return the texts of the public names by their headings.

    The errors have one heading together. So have the arguments and errors that the docstrings of
    several functions describe alike: the functions leave them out.
    """
    names = {f"{place}{name}" for place, module in MODULES.items() for name in _public(module)}
    names = {name for name in names if name not in _errors()} | {"errors"}
    texts = {name: "\n\n".join(filter(None, _parts(name))) for name in names}
    counts = Counter(item for text in texts.values() for item in _FUNCTION_ITEM.findall(text))
    frequent = sorted((item for item in counts if counts[item] >= _SEVERAL), key=counts.__getitem__)
    shared = sorted({_subject(item): item for item in frequent}.values(), key=_by_kind)
    left = {
        name: _EMPTY_LINES.sub(
            "\n\n", _FUNCTION_ITEM.sub(lambda item: "" if item[0] in shared else item[0], text)
        )
        for name, text in texts.items()
    }
    return left | {_SHARED_HEADING: "".join(shared)}


def _subject(item: str) -> str:
    """Return what must not be described twice: the name of an argument, or an error and its reason."""
    return item if item.startswith("- raises") else item.partition("`: ")[0].partition(" (")[0]


def _by_kind(item: str) -> tuple[bool, str]:
    return item.startswith("- raises"), item


def _public(module: Any) -> list[str]:
    every = [name for name in vars(module) if not name.startswith("_")]
    imported = [name for name in every if not inspect.ismodule(getattr(module, name))]
    return getattr(module, "__all__", imported)


def _parts(name: str) -> Iterator[str]:
    thing = reduce(getattr, name.split("."), textsim_db)
    if inspect.ismodule(thing):
        yield "\n".join(f"- `{error}`: {text}" for error, text in _errors().items())
    elif inspect.isclass(thing):
        yield from _class_parts(name, thing)
    elif inspect.isroutine(thing):
        yield from _function_parts(thing)
    else:
        yield f"A mapping of {', '.join(f'`{key}`' for key in thing)}."
    for part in PARTS.get(name, []):
        described = "\n\n".join(filter(None, _class_parts(part.__name__, part)))
        yield f"#### {part.__name__}\n{described}"


def _errors() -> dict[str, str]:
    return {
        name: _prose(inspect.getdoc(kind) or "")
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.TextsimError)
    }


def _class_parts(owner: str, kind: Any) -> Iterator[str]:
    """Yield the docstring of a class, its fields, and its methods; long ones have headings.

    A method that is derived from another, such as a coroutine, is described there.
    """
    yield _markdown(inspect.getdoc(kind) or "", {})
    fields = _fields(kind)
    methods = {name: _unbound(member) for name, member in _members(kind) if name not in fields}
    if owner == "Corpus":
        ordered = " ".join(CORPUS.values()).split()
        methods = dict(sorted(methods.items(), key=lambda item: [*ordered, item[0]].index(item[0])))
    fields |= {
        name: (member.fget.__annotations__["return"], _prose(inspect.getdoc(member) or ""))
        for name, member in methods.items()
        if isinstance(member, property)
    }
    described = {
        name: "\n\n".join(_function_parts(method))
        for name, method in methods.items()
        if inspect.isroutine(method)
    }
    short = {name: text for name, text in described.items() if "\n" not in text}
    if owner == "Corpus":
        yield "\n".join(_contents(title, names.split(), short) for title, names in CORPUS.items())
    yield "\n".join(
        [
            *(f"- `{name}` ({type_}): {doc}".rstrip(": ") for name, (type_, doc) in fields.items()),
            *(f"- {text}" for text in short.values()),
        ]
    )
    for name, method in methods.items():
        if inspect.isroutine(method) and name not in short:
            yield f"#### {owner}.{name}\n{described[name]}"


def _contents(title: str, names: list[str], short: Collection[str]) -> str:
    """Return a line with the methods of a group, and a link to each that has a heading."""
    shown = (f"`{n}`" if n in short else f"[`{n}`](#corpus{n})" for n in names)
    return f"- {title}: {', '.join(shown)}"


def _members(kind: Any) -> Iterator[tuple[str, Any]]:
    ours = [base for base in reversed(kind.__mro__) if base.__module__.startswith("textsim_db")]
    members = {name: member for base in ours for name, member in vars(base).items()}
    is_derived = kind.__module__.startswith(aio.__name__)
    for name, member in members.items():
        is_public = not name.startswith("_") and getattr(member, "__doc__", None)
        if is_public and not (is_derived and hasattr(member, "__wrapped__")):
            yield name, member


def _unbound(member: Any) -> Any:
    return getattr(member, "__func__", member)


def _function_parts(function: Any) -> Iterator[str]:
    """Yield the signature of a function and its docstring, with the types of its arguments."""
    signature = inspect.signature(function)
    types = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    plain = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    result = "" if signature.return_annotation == "None" else f" → {signature.return_annotation}"
    bare = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    arguments = _ENUM.sub(r"\1", bare)
    doc = _markdown(inspect.getdoc(function) or "", types)
    yield f"`{function.__name__}{arguments}{result}`: {doc}"


def _fields(thing: Any) -> dict[str, tuple[str, str]]:
    """Return the types and docstrings of the fields of a class, or of the constants of a module.

    A field whose name says what it is has no docstring.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    body = tree.body if inspect.ismodule(thing) else tree.body[0].body  # type: ignore[attr-defined]
    fields = {}
    for field, after in pairwise([*body, ast.Pass()]):
        match field:
            case ast.AnnAssign(target=ast.Name(name), annotation=type_) if not name.startswith("_"):
                is_described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                text = _prose(str(after.value.value)) if is_described else ""
                fields[name] = ast.unparse(type_), text
    return fields


def _markdown(doc: str, types: dict[str, str]) -> str:
    """Return a docstring with its examples before its arguments and errors, which are one list."""
    prose, *sections = _SECTION.split(doc)
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    examples = textwrap.dedent(bodies.get("Examples", ""))
    arguments = [f"`{name}`{_type(types, name)}: {text}" for name, text in _items(bodies, "Args")]
    errors_of: dict[str, list[str]] = {}
    for name, text in _items(bodies, "Raises"):
        errors_of.setdefault(text, []).append(f"`{name}`")
    raised = [f"raises {', '.join(names)}: {text}" for text, names in errors_of.items()]
    return "\n\n".join(
        [
            *map(_block, filter(None, f"{prose}\n\n{examples}".strip().split("\n\n"))),
            "\n".join(f"- {item}" for item in arguments + raised),
        ]
    ).strip()


def _block(text: str) -> str:
    if text.startswith(">>>"):
        return textwrap.indent(text.strip(), "    ")
    return text.strip("\n") if text.startswith(("    ", "- ")) else _prose(text)


def _items(bodies: dict[str, str], title: str) -> Iterator[tuple[str, str]]:
    for item in filter(None, _ITEM.split(textwrap.dedent(bodies.get(title, "")).strip())):
        name, _, text = _prose(item).partition(": ")
        yield name, text


def _type(types: dict[str, str], name: str) -> str:
    return f" ({types[name]})" if name in types else ""


def _prose(text: str) -> str:
    return " ".join(text.split())
