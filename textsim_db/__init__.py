"""textsim-db: near-duplicate text search inside PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from textsim_db.errors import (
    ConfigurationError,
    CorpusBusy,
    CorpusChanged,
    CorpusExists,
    CorpusNotFound,
    DatabaseError,
    DatabaseUnavailable,
    DocumentError,
    DocumentNotFound,
    DuplicateError,
    EmbeddedServerError,
    InputError,
    JudgementExists,
    MeasureError,
    RecipeError,
    SchemaError,
    TextsimError,
)
from textsim_db.results import (
    Activity,
    AddReport,
    Boilerplate,
    Candidate,
    ChangeReport,
    Cluster,
    ClusterEvent,
    CommonRun,
    Contamination,
    Contradiction,
    Drift,
    Duplicate,
    Failure,
    InspectedCluster,
    Inspection,
    Judgement,
    Match,
    Member,
    Metric,
    Pair,
    PartialMatch,
    Passage,
    PassageList,
    Problem,
    QueryMatch,
    RecallReport,
    Refusal,
    ScopeStatus,
    SharedPassage,
    SharedShingle,
    Source,
    Statistics,
    Status,
    Twin,
    WorkerState,
)
from textsim_db.settings import CorpusConfig, CorpusSettings, Linkage, Mode
from textsim_db.sketch.cost_of_bands import Option, plan

if TYPE_CHECKING:
    from textsim_db.cluster.given_pairs import group_pairs
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database, connect, install
    from textsim_db.dedupe.dedupe_frame import FrameReport, RemovedRow, dedupe_frame
    from textsim_db.diff.cluster_explanation import ExplainedCluster, ExplainedMember
    from textsim_db.diff.explanation import Explanation, explain
    from textsim_db.frames.arrow_results import Results
    from textsim_db.keys import join_key, split_key
    from textsim_db.sync.worker import Worker
    from textsim_db.sync.worker_settings import WorkReport

__version__ = "0.1.0"

# Imported when first used, because SQLAlchemy, psycopg, NumPy and Numba take long to import.
_LAZY = {
    "group_pairs": "textsim_db.cluster.given_pairs",
    "Corpus": "textsim_db.corpus",
    "Database": "textsim_db.database",
    "connect": "textsim_db.database",
    "install": "textsim_db.database",
    "FrameReport": "textsim_db.dedupe.dedupe_frame",
    "RemovedRow": "textsim_db.dedupe.dedupe_frame",
    "dedupe_frame": "textsim_db.dedupe.dedupe_frame",
    "ExplainedCluster": "textsim_db.diff.cluster_explanation",
    "ExplainedMember": "textsim_db.diff.cluster_explanation",
    "Explanation": "textsim_db.diff.explanation",
    "join_key": "textsim_db.keys",
    "split_key": "textsim_db.keys",
    "explain": "textsim_db.diff.explanation",
    "Results": "textsim_db.frames.arrow_results",
    "Worker": "textsim_db.sync.worker",
    "WorkReport": "textsim_db.sync.worker_settings",
}

__all__ = [
    "Activity",
    "AddReport",
    "Boilerplate",
    "Candidate",
    "ChangeReport",
    "Cluster",
    "ClusterEvent",
    "CommonRun",
    "ConfigurationError",
    "Contamination",
    "Contradiction",
    "Corpus",
    "CorpusBusy",
    "CorpusChanged",
    "CorpusConfig",
    "CorpusExists",
    "CorpusNotFound",
    "CorpusSettings",
    "Database",
    "DatabaseError",
    "DatabaseUnavailable",
    "DocumentError",
    "DocumentNotFound",
    "Drift",
    "Duplicate",
    "DuplicateError",
    "EmbeddedServerError",
    "ExplainedCluster",
    "ExplainedMember",
    "Explanation",
    "Failure",
    "FrameReport",
    "InputError",
    "InspectedCluster",
    "Inspection",
    "Judgement",
    "JudgementExists",
    "Linkage",
    "Match",
    "MeasureError",
    "Member",
    "Metric",
    "Mode",
    "Option",
    "Pair",
    "PartialMatch",
    "Passage",
    "PassageList",
    "Problem",
    "QueryMatch",
    "RecallReport",
    "RecipeError",
    "Refusal",
    "RemovedRow",
    "Results",
    "SchemaError",
    "ScopeStatus",
    "SharedPassage",
    "SharedShingle",
    "Source",
    "Statistics",
    "Status",
    "TextsimError",
    "Twin",
    "WorkReport",
    "Worker",
    "WorkerState",
    "connect",
    "dedupe_frame",
    "explain",
    "group_pairs",
    "install",
    "join_key",
    "plan",
    "split_key",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
