-- Figures for a monitoring system, in the names of Prometheus.
--
-- Nothing is counted in a row that several writers would update: the figures come from the log, from the rows of the
-- workers, and from the statistics of the server, which count without locks.

-- The names of all metrics, and what each means; a name that ends in _total is a counter.
CREATE OR REPLACE FUNCTION textsim._metric_descriptions() RETURNS TABLE (name text, help text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20
BEGIN ATOMIC
    VALUES
        ('textsim_documents', 'Documents of the corpus; above ten thousand an estimate.'),
        ('textsim_clustered_share', 'Share of the documents of a tracked corpus that are in clusters, from 0 to 1.'),
        ('textsim_refused_twins_total', 'Documents that a unique corpus has kept out as twins, once for each attempt.'),
        ('textsim_doubtful_pairs', 'Pairs of a tracked unique corpus that wait for a judgement, as of the last update; at '
            'most ten thousand are counted.'),
        ('textsim_doubtful_age_seconds', 'Age of the oldest doubtful pair; 0 if there is none.'),
        ('textsim_pending_documents', 'Documents that wait in the log, by the kind of their entries: change, words or '
            'cluster. Above ten thousand an estimate.'),
        ('textsim_pending_tables', 'Attached tables that wait for a comparison with their documents.'),
        ('textsim_pending_age_seconds', 'Age of the oldest log entry of a kind; 0 if there is none.'),
        ('textsim_lease_overdue_seconds', 'For how long the first lease of a log entry has been over without another '
            'worker having taken the entry; 0 if none is over.'),
        ('textsim_failed_documents', 'Documents that were set aside with an error.'),
        ('textsim_table_problems', 'What keeps a corpus or its attached tables from being maintained; textsim '
            'status lists it.'),
        ('textsim_written_documents_total', 'Documents that all clients have inserted, updated or deleted.'),
        ('textsim_cluster_events_total', 'Changes of tracked clusters: clusters created, split, merged or ended, and '
            'members that joined or left.'),
        ('textsim_unique_locks', 'Locks of a unique corpus, on buckets, scopes and the whole corpus, by state: held or '
            'waiting.'),
        ('textsim_workers_running', 'Workers that have reported in the last 30 seconds.'),
        ('textsim_worker_written_documents_total', 'Documents that the worker has added, replaced, removed or given '
            'word ids.'),
        ('textsim_worker_failures_total', 'Documents that the worker has set aside.'),
        ('textsim_worker_expired_documents_total', 'Expired documents that the worker has removed.'),
        ('textsim_worker_clustered_documents_total', 'Changed documents that the worker has brought into the tracked '
            'clusters.'),
        ('textsim_worker_retries_total', 'Errors of the server after which the worker tried again.'),
        ('textsim_worker_busy_seconds', 'How long the step had lasted at the last report; 0 while the worker waits for '
            'changes.'),
        ('textsim_worker_last_report_timestamp_seconds', 'When the worker last wrote its progress.'),
        ('textsim_worker_last_claim_timestamp_seconds', 'When the worker last looked for changes.'),
        ('textsim_worker_last_write_timestamp_seconds', 'When the worker last wrote documents.'),
        ('textsim_worker_last_error_timestamp_seconds', 'When the worker last had an error.');
END;

-- The counts of merges and of pairs that wait for a judgement: NULL if the corpus does not keep them, or if its tables
-- are damaged.
-- The error at the end gives back the locks, as in _count_documents.
CREATE OR REPLACE FUNCTION textsim._merge_figures(
    c textsim.corpus, OUT refused_twins bigint, OUT clustered bigint, OUT doubtful bigint,
    OUT doubtful_age double precision)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    counter regclass := to_regclass(format('textsim.twin_%s_seq', c.id));
BEGIN
    IF has_sequence_privilege(counter, 'SELECT') THEN
        -- pg_sequence_last_value() would keep its lock.
        EXECUTE format('SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM %s s', counter)
        INTO refused_twins;
    END IF;
    IF EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = c.id) THEN
        clustered := (SELECT m.documents FROM textsim._count_documents(c, 'member') m);
        IF c.unique_from IS NOT NULL THEN
            EXECUTE format($query$
                SELECT count(*), coalesce(extract(epoch FROM textsim._age(min(p.since))), 0)
                FROM (
                    SELECT m.since
                    FROM textsim.%1$I m
                    JOIN textsim.%2$I x ON x.node = m.a JOIN textsim.%3$I d ON d.id = x.document_id
                    JOIN textsim.%2$I y ON y.node = m.b JOIN textsim.%3$I e ON e.id = y.document_id
                    WHERE NOT textsim._is_match(m.similarity, $1)%4$s%5$s AND NOT EXISTS (
                        SELECT FROM textsim.judgement j
                        WHERE j.origin = $2 AND j.a = least(d.key COLLATE "C", e.key)
                            AND j.b = greatest(d.key COLLATE "C", e.key) AND NOT textsim._is_stale(j))
                    LIMIT 10000
                ) p
                $query$, 'match_' || c.id, 'node_' || c.id, 'document_' || c.id, textsim._alive(c, 'd'),
                textsim._alive(c, 'e'))
            INTO doubtful, doubtful_age USING c.unique_from, textsim._origin(c);
        END IF;
    END IF;
    RAISE SQLSTATE 'FREED';
EXCEPTION WHEN SQLSTATE 'FREED' OR undefined_table OR undefined_column OR insufficient_privilege THEN
    RETURN;
END $$;

CREATE OR REPLACE FUNCTION textsim._corpus_metrics(c textsim.corpus)
RETURNS TABLE (name text, labels jsonb, value double precision)
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    first_id CONSTANT integer := textsim._origin(c);
    document regclass := to_regclass('textsim.document_' || c.id);
    event regclass := to_regclass('textsim.cluster_event_' || c.id);
BEGIN
    RETURN QUERY
        WITH waiting AS MATERIALIZED (
            SELECT k.kind, w.*, extract(epoch FROM textsim._age(w.since))::float8 AS age,
                extract(epoch FROM clock_timestamp() - w.leased_until)::float8 AS overdue
            FROM unnest('{change,compare,words,cluster}'::text[]) k (kind)
            CROSS JOIN LATERAL textsim._waiting(c.id, k.kind) w
            WHERE k.kind <> 'cluster' OR event IS NOT NULL
        )
        SELECT f.name, jsonb_build_object('corpus', c.name) || coalesce(f.labels, '{}'), f.value::float8
        FROM (
            SELECT m.name, NULL::jsonb AS labels, m.value
            FROM textsim._count_documents(c) d
            CROSS JOIN textsim._merge_figures(c) g
            CROSS JOIN LATERAL (VALUES
                ('textsim_documents', d.documents::float8),
                ('textsim_clustered_share', g.clustered / greatest(g.clustered, d.documents, 1)::float8),
                ('textsim_refused_twins_total', g.refused_twins),
                ('textsim_doubtful_pairs', g.doubtful),
                ('textsim_doubtful_age_seconds', g.doubtful_age)
            ) m (name, value)
            WHERE m.value IS NOT NULL
            UNION ALL
            SELECT 'textsim_pending_tables', NULL, w.documents FROM waiting w WHERE w.kind = 'compare'
            UNION ALL
            SELECT m.name, jsonb_build_object('kind', w.kind), m.value
            FROM waiting w CROSS JOIN LATERAL (VALUES
                ('textsim_pending_documents', w.documents::float8, w.kind <> 'compare'),
                ('textsim_pending_age_seconds', coalesce(w.age, 0), true),
                ('textsim_lease_overdue_seconds', greatest(w.overdue, 0), w.kind <> 'cluster')
            ) m (name, value, exists)
            WHERE m.exists
            UNION ALL
            SELECT 'textsim_failed_documents', NULL, w.documents FROM textsim._waiting(c.id, 'failed') w
            UNION ALL
            SELECT 'textsim_table_problems', NULL, count(*) FROM textsim._corpus_problems(c)
            UNION ALL
            SELECT 'textsim_written_documents_total', NULL, pg_stat_get_tuples_inserted(document)
                + pg_stat_get_tuples_updated(document) + pg_stat_get_tuples_deleted(document)
            UNION ALL
            SELECT 'textsim_cluster_events_total', NULL, pg_stat_get_tuples_inserted(event) WHERE event IS NOT NULL
            UNION ALL
            SELECT 'textsim_unique_locks', jsonb_build_object('state', s.state), count(l.locktype)
            FROM (VALUES ('held', true), ('waiting', false)) s (state, granted)
            LEFT JOIN pg_locks l ON l.granted = s.granted AND l.locktype = 'advisory' AND l.objsubid = 2
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                AND (l.classid::bigint IN (
                        (hashtext('textsim-db buckets') # first_id)::bigint & 4294967295,
                        (hashtext('textsim-db parts') # first_id)::bigint & 4294967295)
                    OR l.classid::bigint = hashtext('textsim-db unique corpus')::bigint & 4294967295
                        AND l.objid::bigint = first_id)
            WHERE c.is_unique GROUP BY s.state
        ) f;
END $$;

-- A container gives each worker the same process id, and the row of a killed worker can stay for ten minutes.
CREATE OR REPLACE FUNCTION textsim._worker_metrics() RETURNS TABLE (name text, labels jsonb, value double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 20 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY
    SELECT 'textsim_workers_running', '{}'::jsonb, count(*)::float8
    FROM textsim.worker w WHERE textsim._age(w.reported_at) < interval '30 s'
    UNION ALL
    SELECT m.name, jsonb_build_object('worker', format('%s:%s', w.host, w.process)), m.value
    FROM (
        SELECT DISTINCT ON (r.host, r.process) r.* FROM textsim.worker r
        ORDER BY r.host, r.process, r.reported_at DESC
    ) w
    CROSS JOIN LATERAL (VALUES
        ('textsim_worker_written_documents_total', w.written::float8),
        ('textsim_worker_failures_total', w.set_aside),
        ('textsim_worker_expired_documents_total', w.expired),
        ('textsim_worker_clustered_documents_total', w.clustered),
        ('textsim_worker_retries_total', w.retries),
        ('textsim_worker_busy_seconds', CASE WHEN w.step = 'waits for changes' THEN 0
            ELSE extract(epoch FROM w.reported_at - w.step_began_at) END),
        ('textsim_worker_last_report_timestamp_seconds', extract(epoch FROM w.reported_at)),
        ('textsim_worker_last_claim_timestamp_seconds', extract(epoch FROM w.claimed_at)),
        ('textsim_worker_last_write_timestamp_seconds', extract(epoch FROM w.wrote_at)),
        ('textsim_worker_last_error_timestamp_seconds', extract(epoch FROM w.failed_at))
    ) m (name, value)
    WHERE m.value IS NOT NULL;
END $$;

CREATE OR REPLACE VIEW textsim.metrics AS
SELECT m.name, m.labels, m.value, d.help
FROM (
    SELECT f.* FROM textsim.corpus c CROSS JOIN LATERAL textsim._corpus_metrics(c) f
    WHERE has_table_privilege(to_regclass('textsim.document_' || c.id), 'SELECT')
        AND c.name NOT LIKE 'textsim temporary %'
    UNION ALL
    SELECT f.* FROM textsim._worker_metrics() f
) m
JOIN textsim._metric_descriptions() d USING (name);
COMMENT ON VIEW textsim.metrics
    IS 'The figures that a monitoring system collects, one in each row, for the corpora that the role may read. The '
    'names follow the convention of Prometheus: a name that ends in _total is a counter, every other one a gauge.';
COMMENT ON COLUMN textsim.metrics.name IS 'name of the metric';
COMMENT ON COLUMN textsim.metrics.labels IS 'the corpus, and the kind or the state; or the worker, as host:process';
COMMENT ON COLUMN textsim.metrics.value IS 'its value; times are seconds since 1970';
COMMENT ON COLUMN textsim.metrics.help IS 'what it means';
