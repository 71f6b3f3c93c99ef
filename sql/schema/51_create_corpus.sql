-- Corpora from SQL, with the same result as Database.create_corpus and Database.drop_corpus.

-- A number modulo 2^64, as a signed integer; mod() has the sign of the number.
CREATE OR REPLACE FUNCTION textsim._wrapped(value numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN mod(mod(value, 18446744073709551616) + 27670116110564327424, 18446744073709551616) - 9223372036854775808;

-- The probability that a pair with similarity s shares a bucket: 1 - (1 - s^rows)^bands.
CREATE OR REPLACE FUNCTION textsim._pair_recall(threshold double precision, bands integer, rows integer)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- The server raises an error if a power underflows to 0.
    shared double precision := CASE WHEN rows * ln(threshold) < -700 THEN 0
        ELSE threshold ^ rows::double precision END;
    missed double precision := 1 - shared;
BEGIN
    IF threshold = 1 THEN
        RETURN 1;
    END IF;
    -- Only copies are found with certainty, so a value that rounds to 1 is lowered.
    RETURN least(0.9999999999999999::double precision,
        1 - CASE WHEN bands * ln(missed) < -700 THEN 0 ELSE missed ^ bands::double precision END);
END $$;

-- A warning if the bands of a corpus find few pairs of a similarity, which is not below its threshold. Bands that follow
-- from a recall may find more than was asked for.
CREATE OR REPLACE FUNCTION textsim._warn_of_misses(c textsim.corpus, similarity double precision) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    few CONSTANT double precision := 0.8;
    share double precision := CASE WHEN c.recall < few THEN textsim._pair_recall(similarity, c.bands, c.rows) END;
BEGIN
    IF share < few THEN
        RAISE WARNING 'corpus "%": % bands of % rows find % %% of the pairs at %',
            c.name, c.bands, c.rows, round((100 * share)::numeric, 1), similarity
            USING HINT = 'Fewer rows find more, and recall 1 finds all: textsim rebuild changes them.';
    END IF;
END $$;

-- The largest number of rows, 2 or more, that reaches the recall at the threshold; NULL if none does.
CREATE OR REPLACE FUNCTION textsim._chosen_rows(threshold double precision, recall double precision, num_hashes integer)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT max(r) FROM generate_series(2, num_hashes) r
    WHERE textsim._pair_recall(threshold, num_hashes / r, r) >= recall
);

-- Remove a corpus; an error if a table is attached to it, unless that table was dropped.
CREATE OR REPLACE FUNCTION textsim._drop_corpus(number integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    attached text;
    first_id integer := (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = number);
BEGIN
    PERFORM FROM textsim.corpus c WHERE c.id = number FOR UPDATE;
    PERFORM textsim._release_source(s.id) FROM textsim._dropped_sources(number) s;
    SELECT string_agg(s.relation::text, ', ' ORDER BY s.relation::text) INTO attached
    FROM textsim.source s WHERE s.corpus_id = number AND s.active;
    IF attached IS NOT NULL THEN
        RAISE EXCEPTION 'corpus "%" has attached tables; detach them first (textsim detach): %',
            (SELECT c.name FROM textsim.corpus c WHERE c.id = number), attached
            USING ERRCODE = 'dependent_objects_still_exist';
    END IF;
    DELETE FROM textsim.source s WHERE s.corpus_id = number;
    DELETE FROM textsim.corpus c WHERE c.id = number;
    PERFORM textsim._drop_relations(number);
    -- After its tables were locked nobody judges. A rebuilt corpus keeps the judgements.
    DELETE FROM textsim.judgement j
    WHERE j.origin = first_id
        AND NOT EXISTS (SELECT FROM textsim.corpus c WHERE textsim._origin(c) = first_id);
    DELETE FROM textsim.merged_row m
    WHERE m.origin = first_id
        AND NOT EXISTS (SELECT FROM textsim.corpus c WHERE textsim._origin(c) = first_id);
END $$;

-- Store a corpus with its tables, and return its id; the settings are complete and checked.
CREATE OR REPLACE FUNCTION textsim._create_corpus(c textsim.corpus) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    plain textsim.corpus;
    corpus_id integer;
BEGIN
    -- The low 62 bits of the first number of the splitmix64 sequence of the seed (Steele, Lea and Flood, 2014). A shift of a
    -- negative number fills in ones; & clears them.
    c.base := textsim._wrapped(c.seed + 11400714819323198485);
    c.base := textsim._wrapped((c.base # ((c.base >> 30) & 17179869183)) * 13787848793156543929);
    c.base := textsim._wrapped((c.base # ((c.base >> 27) & 137438953471)) * 10723151780598845931);
    c.base := (c.base # ((c.base >> 31) & 8589934591)) & 4611686018427387903;
    plain := c;  -- without what depends on a language or is learned
    plain.stop_words_by_language := '{}';
    plain.boilerplate := NULL;
    -- Opening the corpus computes the signature and buckets of this text again, and compares them.
    c.golden_signature := textsim._signature(plain, textsim._query_values(plain, textsim._form(plain,
        E'The 3 QUICK brown foxes — naïve, ﬁne — jumped; '
            'Быстрая ЛИСА, ταχεία ΑΛΕΠΟΎΣ, 素早い狐が跳ぶ, '
            'चतुर लोमड़ी, الثعلب السريع, สุนัขจิ้งจอก, İstanbul’da 12½ km², e\u0301te\u0301 \U0001F98A. '
            'A recom-\nmended C++ of −5, Straße, مُدَرِّس ١٢, ща\u0301с, co\u00ADop, rose¹.')));
    c.golden_buckets := textsim._stored_buckets(plain, c.golden_signature, NULL);
    c.created_at := now();
    c.created_with := '{}';
    -- A field that is NULL takes the default of its column.
    EXECUTE format($query$
        INSERT INTO textsim.corpus (%1$s) OVERRIDING USER VALUE SELECT %1$s FROM (SELECT ($1).*) c
        ON CONFLICT ON CONSTRAINT corpus_name_key DO NOTHING
        RETURNING id
        $query$, (SELECT string_agg(quote_ident(f.key), ', ') FROM jsonb_each(to_jsonb(c)) f WHERE f.value <> 'null'))
    INTO corpus_id USING c;
    IF corpus_id IS NULL THEN
        RAISE EXCEPTION 'corpus "%" exists already', c.name USING ERRCODE = 'duplicate_object',
            HINT = 'Choose another name, or remove the corpus with textsim.drop_corpus.';
    END IF;
    PERFORM textsim._create_relations(corpus_id);
    RETURN corpus_id;
END $$;

-- The distinct words of texts in normal form, sorted.
CREATE OR REPLACE FUNCTION textsim._distinct_words(bodies text[]) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN array(
        SELECT DISTINCT w.word COLLATE "C"
        FROM unnest(bodies) s (body) CROSS JOIN LATERAL unnest(string_to_array(textsim.normal_form(s.body), ' ')) w (word)
        ORDER BY 1);
END $$;

CREATE OR REPLACE FUNCTION textsim.create_corpus(
    name text, shingle text DEFAULT 'word:3', threshold double precision DEFAULT 0.8,
    recall double precision DEFAULT 0.95, num_hashes integer DEFAULT 128, seed bigint DEFAULT 1,
    bands integer DEFAULT NULL, rows integer DEFAULT NULL, stop_words text[] DEFAULT '{}', language text DEFAULT NULL,
    is_unique boolean DEFAULT false, unique_from double precision DEFAULT NULL, scoped boolean DEFAULT false,
    keep_for interval DEFAULT NULL,
    boilerplate double precision DEFAULT NULL, passages integer DEFAULT NULL, common_passages boolean DEFAULT false,
    guards text[] DEFAULT '{}', guard_words text[] DEFAULT '{}', guard_fillers text[] DEFAULT '{}')
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    fault text;
    c textsim.corpus;
BEGIN
    threshold := textsim._decimal_of(threshold);
    recall := textsim._decimal_of(recall);
    boilerplate := textsim._decimal_of(boilerplate);
    -- NULL means the threshold.
    unique_from := nullif(textsim._decimal_of(unique_from), threshold);
    fault := CASE
        WHEN name IS NULL OR btrim(name) = '' OR octet_length(name) > 200 THEN
            format('the name of the corpus is %L; expected 1 to 200 bytes', left(name, 40))
        WHEN starts_with(name, 'textsim temporary ') THEN
            format('the name of the corpus is %L; names that begin with "textsim temporary " are '
                'reserved for rebuilds', left(name, 40))
        WHEN shingle IS NULL OR shingle !~ '^(word|char):[0-9]{1,4}$'
                OR split_part(shingle, ':', 2)::integer NOT BETWEEN 1 AND 1000 THEN
            format('shingle is %L; expected "word:N" or "char:N", N from 1 to 1000', shingle)
        WHEN threshold IS NULL OR NOT (threshold > 0 AND threshold <= 1) THEN
            format('threshold is %L; expected above 0, at most 1', threshold)
        WHEN recall IS NULL OR NOT (recall > 0 AND recall <= 1) THEN
            format('recall is %L; expected above 0, at most 1', recall)
        WHEN num_hashes IS NULL OR num_hashes NOT BETWEEN 2 AND 4096 THEN
            format('num_hashes is %L; expected 2 to 4096', num_hashes)
        WHEN seed IS NULL OR seed < 0 THEN format('seed is %L; expected 0 or more', seed)
        WHEN (bands IS NULL) <> (rows IS NULL) THEN 'bands and rows go together; one of them is missing'
        WHEN bands < 1 OR rows < 1 OR bands::bigint * rows > num_hashes THEN
            format('%s bands of %s rows cannot be made of %s hashes', bands, rows, num_hashes)
        WHEN rows = 1 THEN 'rows is 1; expected 2 or more: one value of 16 bits gives too many candidates'
        WHEN bands IS NULL AND recall < 1 AND textsim._chosen_rows(threshold, recall, num_hashes) IS NULL THEN
            format('no bands of %s hashes reach recall %s at threshold %s: use recall 1, which makes an exact '
                'corpus, more hashes or a lower recall', num_hashes, recall, threshold)
        WHEN bands IS NOT NULL AND textsim._pair_recall(threshold, bands, rows) = 0 THEN
            format('%s bands of %s rows find nothing at threshold %s: use fewer rows or a higher '
                'threshold', bands, rows, threshold)
        WHEN keep_for <= '0' OR keep_for > '1000 years' THEN
            format('keep_for is %s; expected more than nothing, at most 1000 years', keep_for)
        WHEN boilerplate <= 0 OR boilerplate >= 1 THEN format('boilerplate is %s; expected above 0, below 1', boilerplate)
        WHEN boilerplate IS NOT NULL AND shingle NOT LIKE 'word:%' THEN
            format('boilerplate needs shingles of words, and shingle is "%s": most runs of characters are in many '
                'documents', shingle)
        WHEN passages NOT BETWEEN 4 AND 1000 THEN format('passages is %s; expected 4 to 1000', passages)
        WHEN common_passages AND passages IS NULL THEN 'common_passages needs passages; set both, or neither'
        WHEN language <> 'auto' THEN format('language is "%s"; expected "auto" or NULL', language)
        WHEN is_unique IS NULL THEN 'is_unique is NULL'
        WHEN unique_from IS NOT NULL AND NOT is_unique THEN
            format('unique_from is %s, and the corpus is not unique; leave unique_from out, or give it the value of '
                'threshold', unique_from)
        WHEN NOT (unique_from > threshold AND unique_from <= 1) THEN
            format('unique_from is %s; expected the threshold, which is %s, or more, at most 1', unique_from, threshold)
        WHEN common_passages IS NULL THEN 'common_passages is NULL'
        WHEN scoped IS NULL THEN 'scoped is NULL'
        WHEN stop_words IS NULL OR array_position(stop_words, NULL) IS NOT NULL THEN 'stop_words or one of them is NULL'
        WHEN guard_words IS NULL OR array_position(guard_words, NULL) IS NOT NULL THEN
            'guard_words or one of them is NULL'
        WHEN guard_fillers IS NULL OR array_position(guard_fillers, NULL) IS NOT NULL THEN
            'guard_fillers or one of them is NULL'
        WHEN guards IS NULL OR NOT guards <@ textsim._guard_kinds() THEN
            format('guards is %L; expected any of %s', guards, array_to_string(textsim._guard_kinds(), ', '))
        WHEN ('words' = ANY (guards)) <> (textsim._distinct_words(guard_words) <> '{}') THEN
            'the guard "words" and guard_words go together; set both, with at least one word, or neither'
        WHEN guard_fillers <> '{}' AND NOT 'content' = ANY (guards) THEN 'guard_fillers needs the guard "content"'
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION '%', fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF bands IS NULL AND recall < 1 THEN
        rows := textsim._chosen_rows(threshold, recall, num_hashes);
        bands := num_hashes / rows;
    ELSIF bands IS NOT NULL THEN
        recall := textsim._pair_recall(threshold, bands, rows);
    END IF;
    c.guards := array(
        SELECT g FROM unnest(textsim._guard_kinds()) WITH ORDINALITY k (g, place)
        WHERE g = ANY (guards) ORDER BY place);
    c.guard_words := textsim._distinct_words(guard_words);
    c.guard_fillers := textsim._distinct_words(guard_fillers);
    -- A word that a guard counts is no stop word.
    c.stop_words := array(
        SELECT w FROM unnest(textsim._distinct_words(stop_words)) w
        WHERE NOT textsim._is_counted(c.guards, c.guard_words, c.guard_fillers, w) ORDER BY w COLLATE "C");
    c.name := name;
    c.unit := split_part(shingle, ':', 1);
    c.shingle_length := split_part(shingle, ':', 2);
    c.threshold := threshold;
    c.recall := recall;
    c.num_hashes := num_hashes;
    c.bands := bands;
    c.rows := rows;
    c.seed := seed;
    c.recipe := textsim._recipe();
    c.language := language;
    c.stop_words_by_language := '{}';
    c.is_unique := is_unique;
    c.unique_from := unique_from;
    c.scoped := scoped;
    c.keep_for := keep_for;
    c.boilerplate := boilerplate;
    c.passages := passages;
    c.common_passages := common_passages;
    PERFORM textsim._create_corpus(c);
    PERFORM textsim._warn_of_misses(c, threshold);
    IF boilerplate IS NOT NULL THEN
        RAISE NOTICE 'corpus "%" has no documents to learn boilerplate from yet', name
            USING HINT = 'Add documents, and then run textsim rebuild.';
    END IF;
END $$;
COMMENT ON FUNCTION textsim.create_corpus(
    text, text, double precision, double precision, integer, bigint, integer, integer, text[], text,
    boolean, double precision, boolean, interval, double precision, integer, boolean, text[], text[], text[])
    IS 'Creates a corpus. shingle is word:N or char:N. threshold is the least similarity of a match. recall is the '
    'probability that a pair at the threshold is found; 1 makes an exact corpus, which finds every pair. bands and '
    'rows follow from threshold, recall and num_hashes, unless both are given. stop_words are removed from every text. '
    'If language is auto, the language of each document is identified. If is_unique is true, no document may match '
    'another document of the corpus: add() raises unique_violation. unique_from is the similarity from which a match is '
    'such a twin, by default the threshold; a match below it is doubtful, and is stored. If scoped is true, each document has a scope, such '
    'as a tenant, and documents of different scopes never meet. If keep_for is set, a document no longer counts when '
    'this time has passed since it was last written: searches do not find it, and a worker or expire() removes it. A '
    'month has 30 days here, and a year 365.25 days. If boilerplate is set, such as 0.01, the next textsim rebuild '
    'learns the shingles that more than this share of the documents has; from then on their words are removed from '
    'every text. If passages is set, such as 13, passages() finds every run of at least this many words that a text '
    'shares with a document; with char:N, of characters. The corpus learns which shingles of passages are in very many '
    'documents, from its first load or by textsim rebuild. A passage of such shingles alone, such as a header, is not '
    'found unless common_passages or scoped is true. guards names what two texts must share, besides being similar, to '
    'be merged: numbers, negations, words, which are those of guard_words, or content, which is all words in their '
    'order except fillers, such as the, is and please, and those of guard_fillers. A match whose guards differ is a '
    'sibling: searches and pairs return it, but it keeps no document out, and is in no cluster by itself. Words that a guard '
    'counts are no stop words.';

CREATE OR REPLACE FUNCTION textsim.drop_corpus(name text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    PERFORM textsim._drop_corpus((textsim._corpus(name)).id);
END $$;
COMMENT ON FUNCTION textsim.drop_corpus(text)
    IS 'Removes a corpus with all its documents. Raises dependent_objects_still_exist if a table is '
    'attached to it or a view reads it.';
