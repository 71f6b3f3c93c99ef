"""Documents with different texts."""

from __future__ import annotations


def documents(count: int, version: str = "one") -> list[tuple[str, str]]:
    return [(f"k{i}", f"document number {i} of version {version} w{i % 977}") for i in range(count)]
