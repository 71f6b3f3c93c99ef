-- When a document expires, and which documents have not expired. An expired document counts nowhere.

-- Private functions

-- In seconds, because a day may have 23 hours in the time zone of the session.
CREATE FUNCTION textsim._new_expiry(c textsim.corpus) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN now() + make_interval(secs => extract(epoch FROM c.keep_for)::double precision);
COMMENT ON FUNCTION textsim._new_expiry(textsim.corpus)
    IS 'when a document that is written now expires; NULL: never';

CREATE FUNCTION textsim._alive(c textsim.corpus, alias text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN c.keep_for IS NULL THEN ''
    ELSE format(' AND (%1$s.expires_at IS NULL OR %1$s.expires_at > now())', alias) END;
COMMENT ON FUNCTION textsim._alive(textsim.corpus, text)
    IS 'a condition to append: a document has not expired; empty if the documents of the corpus never do';

CREATE FUNCTION textsim._may_meet(c textsim.corpus) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN c.scoped THEN ' AND d.scope = e.scope' ELSE '' END
    || textsim._alive(c, 'd') || textsim._alive(c, 'e');
COMMENT ON FUNCTION textsim._may_meet(textsim.corpus)
    IS 'a condition to append: documents d and e have one scope and have not expired; empty in a corpus without either';
