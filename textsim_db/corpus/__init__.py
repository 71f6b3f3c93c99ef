"""corpus: the methods of a Corpus, which check arguments and call the packages that do the work.

Texts, keys and settings come in; results go out. Each file has the methods of one subject. The
package never writes SQL, and never computes a signature itself.
"""

from __future__ import annotations

from textsim_db.corpus.cluster_methods import ClusterMethods
from textsim_db.corpus.document_methods import DocumentMethods
from textsim_db.corpus.judgement_methods import JudgementMethods
from textsim_db.corpus.passage_methods import PassageMethods
from textsim_db.corpus.report_methods import ReportMethods
from textsim_db.corpus.search_methods import SearchMethods
from textsim_db.corpus.source_methods import SourceMethods


class Corpus(
    SourceMethods,
    ReportMethods,
    ClusterMethods,
    PassageMethods,
    SearchMethods,
    JudgementMethods,
    DocumentMethods,
):
    """A named collection of documents with one configuration.

    Database.create_corpus() and Database.corpus() return it. Threads may share a corpus. Every method
    that reaches the database raises DatabaseError if a statement fails, and DatabaseUnavailable if there
    is no connection. Every method raises ConfigurationError if an argument is out of range, or if the
    corpus lacks what the method needs, such as passages or tracked clusters; DocumentError if a key or a
    text cannot be stored, for example because of a NUL character; and DocumentNotFound if no document
    has the key of an argument.

    If a method has the argument `progress`, True shows a bar, and a function is called again and again:
    with the number of documents or rows done so far and, if it is known, of all.

    Examples:
        The examples of the methods use this corpus:

        >>> import textsim_db
        >>> db = textsim_db.connect()
        >>> corpus = db.create_corpus("news", threshold=0.6, passages=5)
        >>> report = corpus.add_many({
        ...     "monday": "The city council approved the new budget for schools on Monday evening.",
        ...     "update": "The city council approved the new budget for schools on Monday.",
        ...     "recipe": "Whisk two eggs with sugar and fold in the sifted flour.",
        ... })
        >>> report
        AddReport(added=3, replaced=0, unchanged=0, ...)
    """

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Corpus({self.name!r}, shingle={str(config.shingle)!r}, threshold={config.threshold}, "
            f"bands={config.bands}, rows={config.rows})"
        )
