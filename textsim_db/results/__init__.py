"""results: the objects that searches and writes return. Knows no database."""

from textsim_db.results.clusters import (
    Cluster as Cluster,
    ClusterEvent as ClusterEvent,
    Duplicate as Duplicate,
    InspectedCluster as InspectedCluster,
    Inspection as Inspection,
    Member as Member,
    Pair as Pair,
)
from textsim_db.results.judgements import Contradiction as Contradiction, Judgement as Judgement
from textsim_db.results.passages import (
    CommonRun as CommonRun,
    Contamination as Contamination,
    PartialMatch as PartialMatch,
    Passage as Passage,
    PassageList as PassageList,
    SharedPassage as SharedPassage,
)
from textsim_db.results.searches import (
    Candidate as Candidate,
    Match as Match,
    QueryMatch as QueryMatch,
)
from textsim_db.results.statistics import (
    Boilerplate as Boilerplate,
    Frequency as Frequency,
    Growth as Growth,
    RecallReport as RecallReport,
    SharedShingle as SharedShingle,
    Statistics as Statistics,
)
from textsim_db.results.status import (
    IDLE as IDLE,
    Activity as Activity,
    Drift as Drift,
    Failure as Failure,
    Metric as Metric,
    Problem as Problem,
    ScopeStatus as ScopeStatus,
    Source as Source,
    Status as Status,
    WorkerState as WorkerState,
)
from textsim_db.results.writes import (
    AddReport as AddReport,
    ChangeReport as ChangeReport,
    Refusal as Refusal,
    Twin as Twin,
)
