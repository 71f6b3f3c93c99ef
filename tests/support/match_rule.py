"""Puts a rule of a test in place of the one function that decides a match, in Python and in SQL."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numba
import pytest

from textsim_db.compare import match_rule

LEAST_REFUSED, LEAST_COPY = 0.9, 0.99
"""The rule refuses what is as similar as the first, and not as the second."""

SQL_RULE = f"""
    CREATE OR REPLACE FUNCTION textsim._is_match(similarity double precision, threshold double precision)
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN similarity >= threshold
        AND NOT (similarity >= {LEAST_REFUSED} AND similarity < {LEAST_COPY})
"""


def _is_match(similarity: float, threshold: float) -> bool:
    is_refused = LEAST_REFUSED <= similarity < LEAST_COPY
    return similarity >= threshold and not is_refused


def put_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse matches by the rule in this process."""
    _replace(monkeypatch, match_rule.is_match, _is_match)


def _replace(monkeypatch: pytest.MonkeyPatch, old: Any, function: Callable[..., object]) -> None:
    """Replace a kernel, and compile the kernels that call it again; nothing of it is cached."""
    new = numba.jit(**old.targetoptions)(function)
    named = [(module, name) for module in _modules() for name in vars(module)]
    for module, name in named:
        if getattr(module, name) is old:
            monkeypatch.setattr(module, name, new)
    for module, name in named:
        caller = getattr(module, name)
        # Some objects have every attribute, such as sqlalchemy.func.
        is_kernel = inspect.isfunction(getattr(caller, "py_func", None))
        if is_kernel and caller is not new and _calls(caller, new):
            _replace(monkeypatch, caller, caller.py_func)


def _calls(caller: Any, kernel: Any) -> bool:
    names, values = caller.py_func.__code__.co_names, caller.py_func.__globals__
    return any(values.get(name) is kernel for name in names)


def _modules() -> Iterator[ModuleType]:
    modules = [*sys.modules.items()]
    return (module for name, module in modules if name.startswith("textsim_db.") and module)
