"""Pieces of HTML as a whole: an output of a notebook with its own style, or a page that stands alone."""

from __future__ import annotations

from html import escape

_STYLE = """
.textsim { overflow-wrap: anywhere; }
.textsim table.textsim { border-collapse: collapse; margin: 0.5em 0; }
.textsim table.textsim th, .textsim table.textsim td { text-align: start; vertical-align: top;
  padding: 0.15em 1em 0.15em 0; border: 0; border-bottom: 1px solid #80808060; background: none; }
.textsim table.textsim .number { text-align: end; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.textsim p.note { opacity: 0.75; margin: 0.3em 0; }
.textsim p.warning { border-inline-start: 0.3em solid #d97706; padding-inline-start: 0.7em; }
.textsim .gap, .textsim .key { opacity: 0.75; }
.textsim .texts { display: grid; grid-template-columns: 1fr 1fr; gap: 0.3em 1.5em; }
.textsim .texts > * { min-width: 0; }
.textsim .text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.textsim del { background: #ef444440; color: inherit; text-decoration: line-through #ef4444; }
.textsim ins { background: #22c55e40; color: inherit; text-decoration: underline #22c55e; }
.textsim svg { display: block; width: 100%; max-width: 40em; height: 9em; }
.textsim .bar { fill: #3b82f6; }
.textsim .curve { fill: none; stroke: #d97706; stroke-width: 2; vector-effect: non-scaling-stroke; }
.textsim .threshold { stroke: currentColor; stroke-dasharray: 3; vector-effect: non-scaling-stroke; }
.textsim .axis { display: flex; justify-content: space-between; max-width: 40em; opacity: 0.75; }
"""
_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; font-weight: 500; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 0.3rem; }
article { border-top: 1px solid #80808060; padding: 0.6rem 0; }
summary { cursor: pointer; }
.text a { color: inherit; text-decoration: none; }
.text a:hover, .text a:focus, .text a:target { background: #3b82f640; outline: 1px solid #3b82f6; }
@media (max-width: 45rem) { .textsim .texts { grid-template-columns: 1fr; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Forbids a browser to load or to run anything, even if a text were not escaped."""


def output(*pieces: str) -> str:
    """Return pieces of HTML as an output of a notebook, with a style that no other output sees."""
    return f'<div class="textsim"><style>{_STYLE}</style>\n{"".join(pieces)}</div>'


def page(title: str, *pieces: str) -> str:
    """Return pieces of HTML as a page that stands alone; title: a text."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_PAGE_STYLE}{_STYLE}</style>\n</head>\n"
        f'<body class="textsim">\n{"".join(pieces)}</body>\n</html>\n'
    )


def note(text: str) -> str:
    """Return a paragraph beside the matter; text: HTML."""
    return f'<p class="note">{text}</p>\n'
