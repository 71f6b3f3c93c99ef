"""The SQL statements of this package."""

from __future__ import annotations

from typing import Final, LiteralString

COUNT_STORED_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: count the documents of corpus {id} */ SELECT count(*) FROM {document}
"""
TAKE_NAME: Final[LiteralString] = """
UPDATE textsim.corpus c SET name = %(name)s
WHERE c.id = %(id)s
    AND NOT EXISTS (SELECT FROM textsim.corpus o WHERE o.name = %(name)s AND o.id <> c.id)
RETURNING c.id
"""
# A short statement for each page, so that no transaction stays open while Spark computes.
PAGE_OF_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: read corpus {id} */
SELECT id, key, language, scope, shingle_count, pg_catalog.array_send(word_ids), normal_form
FROM {document} d WHERE id > %s AND id <= %s{alive} ORDER BY id LIMIT %s
"""
