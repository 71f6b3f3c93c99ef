"""The size of the installed packages that textsim-db and each extra bring.

    python -m benchmarks.package_sizes [--record]

It reads what is installed in this environment, so install the extras first. Sizes are those of files,
without compiled bytecode.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.harness import options, publish

NAME = "textsim-db"
EXTRAS = (
    *("embedded", "languages", "measures", "parquet", "plot", "prometheus", "review"),
    "spark",
)
LARGE_MB = 10.0
"""Packages from this size on are named."""


def needed(extra: str = "") -> dict[str, float]:
    """Return the packages that textsim-db with an extra needs, with their sizes in MB."""
    sizes: dict[str, float] = {}
    waiting = [(NAME, extra)]
    while waiting:
        name, of_extra = waiting.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError as error:
            raise SystemExit(f"{name} is not installed, and extra {extra!r} needs it") from error
        for text in found.requires or []:
            requirement = Requirement(text)
            marker = requirement.marker
            key = requirement.name.lower().replace("_", "-")
            if (marker is None or marker.evaluate({"extra": of_extra})) and key not in sizes:
                sizes[key] = megabytes(distribution(key))
                waiting += [(key, each) for each in requirement.extras or {""}]
    return sizes


def megabytes(package: Distribution) -> float:
    """Return the size of the files of a package."""
    files = [file.locate() for file in package.files or [] if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in map(_path, files) if file.is_file()) / 1e6


def _path(file: object) -> Path:
    return Path(str(file))


def described(sizes: dict[str, float]) -> list[str]:
    """Return the total of packages, and the names of the large ones."""
    large = sorted(sizes, key=lambda name: -sizes[name])
    names = [f"{name} {sizes[name]:.0f}" for name in large if sizes[name] >= LARGE_MB]
    return [f"{sum(sizes.values()):.0f}", ", ".join(names)]


def main() -> None:
    """Measure, and print a table."""
    given = options(__doc__).parse_args()
    base = needed()
    rows = [["installed", "MB", f"packages of {LARGE_MB:.0f} MB or more"]]
    rows.append(["textsim-db", *described(base)])
    for extra in EXTRAS:
        more = {name: size for name, size in needed(extra).items() if name not in base}
        rows.append([f"extra {extra}", *described(more)])
    figures = {"base_mb": sum(base.values())}
    publish(given.record, "package_sizes", figures, {"package_sizes": rows})


if __name__ == "__main__":
    main()
