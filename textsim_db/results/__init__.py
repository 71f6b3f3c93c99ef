"""results: the objects that searches and writes return. Knows no database."""

from textsim_db.results.cluster_results import (
    Cluster as Cluster,
    ClusterEvent as ClusterEvent,
    Duplicate as Duplicate,
    InspectedCluster as InspectedCluster,
    Inspection as Inspection,
    Member as Member,
    Pair as Pair,
)
from textsim_db.results.corpus_reports import (
    Boilerplate as Boilerplate,
    Frequency as Frequency,
    Growth as Growth,
    RecallReport as RecallReport,
    SharedShingle as SharedShingle,
    Statistics as Statistics,
)
from textsim_db.results.search_results import (
    Candidate as Candidate,
    CommonRun as CommonRun,
    Contamination as Contamination,
    Judgement as Judgement,
    Match as Match,
    PartialMatch as PartialMatch,
    Passage as Passage,
    PassageList as PassageList,
    QueryMatch as QueryMatch,
    SharedPassage as SharedPassage,
)
from textsim_db.results.states import (
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
from textsim_db.results.write_reports import (
    AddReport as AddReport,
    ChangeReport as ChangeReport,
    Refusal as Refusal,
    Twin as Twin,
)
