-- The letters of each user, and answers with quotations, each of which stands in a letter of the same user.
CREATE TABLE letter (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL,
    body text NOT NULL
);
SELECT textsim.create_corpus('letters', passages => 5, scoped => true);
SELECT textsim.attach('letters', 'letter', 'id', 'body', mode => 'inline', scope_column => 'owner');

CREATE TABLE answer (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL,
    body text NOT NULL
);
CREATE TABLE quotation (
    answer bigint NOT NULL REFERENCES answer,
    letter bigint NOT NULL REFERENCES letter,
    body text NOT NULL
);

CREATE FUNCTION check_quotation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source letter;
    quoted record;
BEGIN
    -- The lock waits for whoever changes the letter, so the next statement reads the text that is stored in the end.
    SELECT l.* INTO source
    FROM letter l JOIN answer a ON a.owner = l.owner
    WHERE l.id = NEW.letter AND a.id = NEW.answer FOR SHARE OF l;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this user has no letter %', NEW.letter USING ERRCODE = 'check_violation';
    END IF;
    SELECT q.* INTO quoted
    FROM textsim.quote('letters', NEW.body, source.id::text, scope => source.owner, original => source.body) q;
    IF quoted.verdict <> 'exact' OR quoted.differences <> '[]' THEN
        RAISE EXCEPTION 'the quotation "%" is not in letter % word for word', NEW.body, NEW.letter
            USING ERRCODE = 'check_violation', DETAIL = quoted.differences;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER check_quotation AFTER INSERT OR UPDATE ON quotation
    FOR EACH ROW EXECUTE FUNCTION check_quotation();

-- The quotations of an answer with their places: the characters of the letter before each, and up to its end.
CREATE VIEW placed_quotation AS
SELECT q.answer, q.letter, q.body, lower(c.place) AS start, upper(c.place) AS "end"
FROM quotation q
JOIN letter l ON l.id = q.letter
CROSS JOIN textsim.quote('letters', q.body, l.id::text, scope => l.owner) v
CROSS JOIN jsonb_to_recordset(v.pieces) p (in_document integer, words_in_document integer)
CROSS JOIN textsim.characters('letters', l.body, p.in_document, p.words_in_document) c (place);
