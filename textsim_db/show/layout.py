"""Pieces of HTML as a whole: an output of a notebook with its own style."""

from __future__ import annotations

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


def output(*pieces: str) -> str:
    """Return pieces of HTML as an output of a notebook, with a style that no other output sees."""
    return f'<div class="textsim"><style>{_STYLE}</style>\n{"".join(pieces)}</div>'


def note(text: str) -> str:
    """Return a paragraph beside the matter; text: HTML."""
    return f'<p class="note">{text}</p>\n'
