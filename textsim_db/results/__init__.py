"""results: the objects that searches, writes and reports return. Knows no database."""

from textsim_db.results.quotations import (
    Quotation as Quotation,
)
from textsim_db.results.reports import (
    AddReport as AddReport,
    Boilerplate as Boilerplate,
    ChangeReport as ChangeReport,
    ForgetReport as ForgetReport,
    RecallReport as RecallReport,
    Refusal as Refusal,
    Statistics as Statistics,
    Twin as Twin,
)
from textsim_db.results.rows import (
    Answer as Answer,
    Candidate as Candidate,
    Cluster as Cluster,
    ClusterEvent as ClusterEvent,
    Contamination as Contamination,
    Distinct as Distinct,
    DoubtfulPair as DoubtfulPair,
    Duplicate as Duplicate,
    InspectedCluster as InspectedCluster,
    Judgement as Judgement,
    Match as Match,
    Member as Member,
    MergeReport as MergeReport,
    Outcome as Outcome,
    Pair as Pair,
    Passage as Passage,
    PassageList as PassageList,
    QueryMatch as QueryMatch,
    Region as Region,
    Rejected as Rejected,
    SharedPassage as SharedPassage,
    Split as Split,
    StoredKey as StoredKey,
    Unmerged as Unmerged,
)
from textsim_db.results.states import (
    CorpusSummary as CorpusSummary,
    Drift as Drift,
    Failure as Failure,
    Metric as Metric,
    Problem as Problem,
    ScopeStatus as ScopeStatus,
    Source as Source,
    Status as Status,
    WorkerState as WorkerState,
)
