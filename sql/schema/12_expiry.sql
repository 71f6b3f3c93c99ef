-- The age of a time, when a document expires, and which documents have not expired. An expired document counts nowhere.
--
-- now() of the server decides. Every statement whose rows a user sees has the condition {alive} (in Python) or
-- textsim._alive(c, 'd'), which is empty in a corpus without keep_for that is not unique. A row of an attached table that
-- has expired counts as a row without a text, because every reader has the condition textsim._has_document. This includes
-- the row filter, which _prepare_source parses as the condition of an index on an empty temporary table, so that no code
-- of a user runs with the rights of the schema's owner. Clocks of transactions differ, and a later clock may have seen a
-- document expired and let a twin in, so a unique corpus compares even an unchanged document before it counts for longer.

-- How long ago a time was. If the clock was set back, it may be still to come; then how far ahead it is, so that nobody
-- takes what waits since then for new.
CREATE OR REPLACE FUNCTION textsim._age(at timestamptz) RETURNS interval
LANGUAGE sql STABLE PARALLEL SAFE
RETURN greatest(clock_timestamp() - at, at - clock_timestamp());

-- When a document that is written now expires; NULL: never.
-- In seconds, because a day may have 23 hours in the time zone of the session.
CREATE OR REPLACE FUNCTION textsim._new_expiry(c textsim.corpus) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN now() + make_interval(secs => extract(epoch FROM c.keep_for)::double precision);

-- A condition to append: a document has not expired; empty if the documents of the corpus never do.
CREATE OR REPLACE FUNCTION textsim._unexpired(c textsim.corpus, alias text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN c.keep_for IS NULL THEN ''
    ELSE format(' AND (%1$s.expires_at IS NULL OR %1$s.expires_at > now())', alias) END;

-- A condition to append: a document counts, because it has not expired, and was not rejected.
CREATE OR REPLACE FUNCTION textsim._alive(c textsim.corpus, alias text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN textsim._unexpired(c, alias) || CASE WHEN c.is_unique THEN format(' AND %s.rejected IS NULL', alias) ELSE '' END;

-- A condition to append: documents d and e are of one part and count; empty in a corpus where all documents do.
CREATE OR REPLACE FUNCTION textsim._may_meet(c textsim.corpus) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN c.scoped THEN ' AND d.part = e.part' ELSE '' END
    || textsim._alive(c, 'd') || textsim._alive(c, 'e');
