"""results: the objects that searches and writes return. Knows no database."""

from textsim_db.results.clusters import (
    Cluster,
    ClusterEvent,
    Duplicate,
    InspectedCluster,
    Inspection,
    Member,
    Pair,
)
from textsim_db.results.judgements import Contradiction, Judgement
from textsim_db.results.passages import (
    CommonRun,
    Contamination,
    PartialMatch,
    Passage,
    PassageList,
    SharedPassage,
)
from textsim_db.results.searches import Candidate, Match, QueryMatch
from textsim_db.results.statistics import (
    Boilerplate,
    Frequency,
    Growth,
    RecallReport,
    SharedShingle,
    Statistics,
)
from textsim_db.results.status import (
    IDLE,
    Activity,
    Drift,
    Failure,
    Metric,
    Problem,
    ScopeStatus,
    Source,
    Status,
    WorkerState,
)
from textsim_db.results.writes import AddReport, ChangeReport, Refusal, Twin

__all__ = [
    "IDLE",
    "Activity",
    "AddReport",
    "Boilerplate",
    "Candidate",
    "ChangeReport",
    "Cluster",
    "ClusterEvent",
    "CommonRun",
    "Contamination",
    "Contradiction",
    "Drift",
    "Duplicate",
    "Failure",
    "Frequency",
    "Growth",
    "InspectedCluster",
    "Inspection",
    "Judgement",
    "Match",
    "Member",
    "Metric",
    "Pair",
    "PartialMatch",
    "Passage",
    "PassageList",
    "Problem",
    "QueryMatch",
    "RecallReport",
    "Refusal",
    "ScopeStatus",
    "SharedPassage",
    "SharedShingle",
    "Source",
    "Statistics",
    "Status",
    "Twin",
    "WorkerState",
]
