from textsim_db.cluster.pair_groups import group_pairs as group_pairs
from textsim_db.corpus import Corpus as Corpus
from textsim_db.corpus.database import Database as Database, connect as connect, install as install
from textsim_db.dedupe.compare_quotations import quote as quote, quotes as quotes
from textsim_db.dedupe.compare_texts import (
    clusters as clusters,
    distinct as distinct,
    pairs as pairs,
    split as split,
)
from textsim_db.dedupe.dedupe_frame import dedupe_frame as dedupe_frame
from textsim_db.errors import (
    ConfigurationError as ConfigurationError,
    CorpusExists as CorpusExists,
    CorpusNotFound as CorpusNotFound,
    DatabaseError as DatabaseError,
    DatabaseUnavailable as DatabaseUnavailable,
    DocumentError as DocumentError,
    DocumentNotFound as DocumentNotFound,
    DuplicateError as DuplicateError,
    JudgementExists as JudgementExists,
    TextsimError as TextsimError,
)
from textsim_db.files.arrow_frames import Results as Results
from textsim_db.measures.explanation import Explanation as Explanation, explain as explain
from textsim_db.settings.corpus_settings import (
    CorpusConfig as CorpusConfig,
    CorpusSettings as CorpusSettings,
)
from textsim_db.sketch.plan_options import plan as plan
from textsim_db.sync.worker import Worker as Worker
from textsim_db.text.languages import identify_languages as identify_languages
from textsim_db.text.storable import join_key as join_key, split_key as split_key

__version__: str
