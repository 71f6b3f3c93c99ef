-- The guards of a text: what texts must share, besides being similar, to be merged. textsim_db.text.guards computes the
-- same, and a test compares the lists with those of Python, which say why a word stands in them. If a list changes, raise
-- textsim._guard_lists() in 11 and GUARD_LISTS in Python, so that a corpus is refused until a rebuild has computed its
-- guards anew.

-- The words of a list, divided by |. A planner reads the constant, so that words are looked up in a hash table.
CREATE OR REPLACE FUNCTION textsim._word_list(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE name
    -- The words of negation.
    WHEN 'negations' THEN
        'aint|aldri|aldrig|arent|asla|aucun|aucune|aucunement|belum|bez|bukan|bukanlah|cannot|cant|chưa|chẳng|chớ|'
        'couldnt|değil|didnt|doesnt|dont|ei|eivät|ej|emme|ette|fără|geen|guère|hadnt|hardly|hasnt|havent|hayir|hiç|'
        'ikke|ikkje|ilman|inga|ingen|ingenting|inget|inte|isnt|jamais|jamás|jangan|kaum|kein|keine|keinem|keinen|'
        'keiner|keinerlei|keines|keinesfalls|keineswegs|keins|không|mightnt|mitnichten|mustnt|nada|nadie|ne|neanche|'
        'nebyl|nebyla|nebylo|neednt|nei|nein|neither|nej|nejsem|nejsou|nem|nema|nemaju|nemmeno|nemá|nemám|nenhum|'
        'nenhuma|není|neppure|nergens|nessun|nessuna|nessuno|never|neće|nic|nicht|nichts|nici|nicio|niciodată|niciun|'
        'nie|niemals|niemand|niemandem|niemanden|niemandes|niente|niet|niets|nigdy|nije|nikad|nikada|nikdo|nikdy|'
        'niko|niks|nikt|nimeni|nimic|nimmer|nincs|nincsenek|ninguna|ninguno|ninguém|ningún|nirgends|nirgendwo|'
        'nirgendwoher|nirgendwohin|nisam|nisu|nitko|nič|ništa|no|nobody|non|none|nooit|nope|nor|not|nothing|nowhere|'
        'nu|nulla|nullement|nunca|não|nélkül|ohne|olmadan|oughtnt|pas|rien|sans|scarcely|sehol|sem|senza|shant|'
        'shouldnt|sin|soha|sohasem|tampoco|tanpa|tidak|tidaklah|uden|utan|uten|wasnt|weder|werent|without|wont|'
        'wouldnt|yok|zonder|älkää|älä|đừng|żaden|żadna|żadne|żadnych|žiadny|žádná|žádné|žádný|δε|δεν|καμία|κανένα|'
        'κανένασ|μη|μην|ούτε|ποτέ|τίποτα|χωρίσ|όχι|без|жодного|не|нельзя|нема|немає|нет|нету|ни|никада|никаких|'
        'никакой|никога|никогда|никой|никто|никъде|нису|ничего|ништа|нищо|није|няма|нямало|нямам|нямаме|нямат|нямате|'
        'нямах|нямаш|нямаше|ні|ніколи|ніхто|нічого|אין|אינה|אינו|אינם|בלי|לא|ללא|بدون|بغير|بلا|دون|غير|لا|لم|لن|ليس|'
        'ليست|ليسوا|مت|نبايد|نبود|ندارد|ندارند|نشد|نشده|نكرد|نكرده|نميتوان|نميشود|نميكند|نه|نيست|نيستند|نہ|نہيں|هيچ|'
        'नही|नहीं|ना|बिना|मत|নয়|না|নাই|নেই|ບໍ່|不|勿|无|未|沒|没|無|非|마세요|마십시오|못|못하는|못하다|못한|못한다|못할|못합니다|못해|못했다|못했습니다|아니|'
        '아니다|아니라|아니에요|아니요|아닌|아닙니다|안'
    -- The negations of several words. None of their words is one of the words above.
    WHEN 'negation_phrases' THEN
        'ain t|aren t|can t|couldn t|daren t|didn t|doesn t|don t|hadn t|hasn t|haven t|isn t|mayn t|mightn t|'
        'mustn t|n t|needn t|nul n|nulle part|oughtn t|personne n|shan t|shouldn t|w o|wasn t|weren t|won t|wouldn t|'
        'ไ ม่|ず に|せ ず|な い|な か っ|な く|ま せ ん'
    -- The words that the guard content leaves out; textsim_db.text.distinctions says which words are none.
    WHEN 'fillers' THEN
        'a|abbiamo|adalah|ahoj|alstublieft|am|an|are|at|avaient|avait|avem|avez|aveți|avoir|avons|be|been|bei|'
        'beim|being|bir|bitte|bol|bola|bolo|bonjour|byl|byla|byli|bylo|być|był|była|było|były|byť|být|can|ciao|'
        'could|cześć|danke|dapat|das|degli|dei|del|della|delle|dello|dem|den|der|des|di|did|do|does|doing|done|'
        'dziękuję|děkuji|een|egy|ein|eine|einem|einen|einer|eines|el|es|essere|est|estar|está|están|estão|ett|'
        'faire|fait|foi|fost|getan|gjorde|gjør|gli|graag|gracias|grazie|gör|ha|habe|haben|habt|hace|hacer|had|'
        'hadden|hade|hallo|han|hanno|har|has|hast|hatte|hatten|have|having|hebben|heeft|hei|hej|hello|het|hey|hi|'
        'hola|ialah|il|is|ist|jest|jsou|kan|kann|kannst|kasih|kiitos|kindly|konnte|kunne|kunnen|kunt|kérem|können|'
        'könnte|könnten|köszönöm|la|las|le|les|lo|los|lze|lütfen|merci|merhaba|mogę|mohu|może|można|mulțumesc|'
        'môže|může|obrigada|obrigado|of|oli|olivat|olla|olá|ont|ovat|peut|peuvent|peux|please|pls|pode|podem|'
        'poder|posso|possono|pouvez|pouvoir|prego|proszę|prosím|puede|pueden|puedo|può|rog|ser|silakan|sind|'
        'sommes|sono|sont|suis|sunt|svp|são|sú|są|tack|tem|terima|teşekkürler|thank|thanks|the|tolong|tun|tut|têm|'
        'um|uma|un|una|une|vannak|vær|være|været|waren|was|were|wäre|är|è|é|étaient|était|êtes|être|ďakujem|ένα|'
        'ένασ|έχει|έχουν|ήταν|είναι|είχε|ευχαριστώ|μια|μπορεί|μπορώ|ο|οι|παρακαλώ|τα|την|τησ|το|τον|του|των|беше|'
        'благодаря|був|була|були|було|бути|был|была|были|было|быть|дякую|е|есть|здравствуйте|могу|може|может|'
        'можна|можно|моля|пожалуйста|привет|са|спасибо|съм|є|का|की|कृपया|के|था|थी|थे|है|हैं|の|吗|吧|呢|嗎|是|的|請|请'
    -- Words before which an apostrophe has left one of the next list: in "what's" it is a filler.
    WHEN 'hosts' THEN 'he|here|how|i|it|she|that|there|they|this|we|what|when|where|which|who|why|you'
    WHEN 'clitics' THEN 'd|m|re|s|ve'
    -- The endings of ordinal numbers, and the units that belong to the number before them.
    WHEN 'ordinals' THEN 'st|nd|rd|th|e|er|ère|ème|ste|de'
    WHEN 'units' THEN
        'cl|cm|dl|dm|ft|g|gal|gb|ghz|gib|hz|kb|kg|khz|kib|km|kv|kw|kwh|l|lb|lbs|m|ma|mah|mb|mg|mhz|mib|ml|mm|mw|oz|tb|v|w'
    -- Numerals in words, and the units that are compared with each other.
    WHEN 'numerals' THEN
        'acht|cent|cien|cinco|cinq|cuatro|deux|diez|dix|doce|dos|douze|drei|eight|eighteen|eighth|eighty|'
        'eleven|elf|fifteen|fifth|fifty|first|five|forty|four|fourteen|fourth|fünf|huit|hundert|hundred|ii|'
        'iii|iv|ix|jr|mil|mille|million|neuf|neun|nine|nineteen|ninety|ninth|nueve|ocho|once|onze|quatre|'
        'sechs|second|seis|sept|seven|seventeen|seventh|seventy|sieben|siete|six|sixteen|sixth|sixty|sr|'
        'tausend|ten|tenth|third|thirteen|thirty|thousand|three|tres|trois|twelve|twenty|two|vi|vier|vii|'
        'viii|xi|xii|xiii|xiv|xix|xv|xvi|xvii|xviii|xx|xxi|xxii|xxiii|xxiv|xxix|xxv|xxvi|xxvii|xxviii|zehn|'
        'zwei|zwölf|一|七|万|三|九|二|五|亿|億|八|六|十|千|四|百'
    WHEN 'compared_units' THEN
        'a|c|chf|cl|cm|dl|dm|dollar|dollars|eur|euro|euros|f|ft|g|gal|gb|gbp|ghz|gib|h|hz|jpy|kb|kg|khz|kib|'
        'km|kw|kwh|l|lb|lbs|m|ma|mb|mg|mhz|mi|mib|min|ml|mm|ms|mv|mw|oz|pt|s|t|tb|usd|v|w|yd'
END;

-- How many negations a normal form has. To look words up in a constant list is twenty times as fast as to search for
-- them by a regular expression, so it only searches for the few negations of several words where there may be one.
CREATE OR REPLACE FUNCTION textsim._count_negations(form text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_ascii boolean := octet_length(form) = length(form);
    may_negate boolean := NOT is_ascii AND form COLLATE "C" ~ '[않없]';
    negations bigint;
    doubled text;
    after_n text := 'cessé|ni|nul|nulle|osé|personne|plus|point|pu|su';
    inside text := ' %s (?=(?: (?!(?:' || after_n || '|aucun|aucune|autre|autres|guère|jamais|mieux|moins|pas|qu|que|rien) )'
        '[^ ]+ ){1,3} (?:%s) )';
BEGIN
    SELECT count(*) INTO negations FROM unnest(string_to_array(form, ' ')) w (word)
    WHERE w.word COLLATE "C" = ANY (string_to_array(textsim._word_list('negations'), '|'))
        OR may_negate AND w.word COLLATE "C" ~ '[않없]';
    -- The spaces are doubled, because a match takes the space before it and the one after it.
    doubled := ' ' || replace(form, ' ', '  ') || ' ' COLLATE "C";
    IF NOT is_ascii OR doubled ~ ' (?:t|n|o|part) ' THEN
        negations := negations + (
            SELECT count(*) FROM regexp_matches(doubled,
                ' (?:' || replace(textsim._word_list('negation_phrases'), ' ', '  ') || ') ', 'g'));
    END IF;
    IF doubled ~ ' ne? ' THEN
        -- French: n' negates with plus or pu after a verb, for example, and ne with que means only.
        negations := negations
            + (SELECT count(*) FROM regexp_matches(doubled, format(inside, 'n', after_n), 'g'))
            - (SELECT count(*) FROM regexp_matches(doubled, format(inside, 'ne', 'qu|que'), 'g'));
    END IF;
    RETURN negations;
END $$;

-- A normal form with numbers as one writes them plainly: 26 for 26th, 8w for 8 W.
CREATE OR REPLACE FUNCTION textsim._plain_numbers(form text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF form COLLATE "C" !~ '[0-9]' THEN
        RETURN form;
    END IF;
    RETURN ltrim(regexp_replace(regexp_replace(' ' || form COLLATE "C",
        ' ([0-9]+)(?:' || textsim._word_list('ordinals') || ')(?= |$)', E' \\1', 'g'),
        ' (-?[0-9]+) (' || textsim._word_list('units') || ')(?= |$)', E' \\1\\2', 'g'), ' ');
END $$;

-- The content words of a normal form in their order, or all words if there are only fillers.
CREATE OR REPLACE FUNCTION textsim._content(guard_fillers text[], form text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plain text := textsim._plain_numbers(form);
    content text;
BEGIN
    SELECT string_agg(w.word, ' ' ORDER BY w.place) INTO content
    FROM unnest(string_to_array(regexp_replace(' ' || plain || ' ' COLLATE "C",
        ' (' || textsim._word_list('hosts') || ') (?:' || textsim._word_list('clitics') || ')(?= )', E' \\1', 'g'), ' '))
        WITH ORDINALITY w (word, place)
    WHERE w.word <> '' AND (w.word COLLATE "C" ~ '[0-9]' OR NOT (
        w.word COLLATE "C" = ANY (string_to_array(textsim._word_list('fillers'), '|'))
        OR w.word COLLATE "C" = ANY (guard_fillers)));
    RETURN coalesce(content, nullif(plain, ''));
END $$;

-- The elements of a normal form that guards compare: a line "KIND ELEMENT" for each element, in order.
CREATE OR REPLACE FUNCTION textsim._guard_lines(guards text[], guard_words text[], guard_fillers text[], form text)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lines text[] := '{}';
    negations bigint;
BEGIN
    IF 'numbers' = ANY (guards) AND form COLLATE "C" ~ '[0-9]' THEN
        -- Runs of integers, which a unit ends, and other words with a digit.
        lines := array(
            SELECT DISTINCT 'numbers ' || m[1] COLLATE "C"
            FROM regexp_matches(' ' || textsim._plain_numbers(form) COLLATE "C",
                ' ((?:-?[0-9]+ )*-?[0-9]+(?:' || textsim._word_list('units') || ')?|[^ ]*[0-9][^ ]*)(?= |$)', 'g') m
            ORDER BY 1);
    END IF;
    IF 'negations' = ANY (guards) THEN
        negations := textsim._count_negations(form);
        IF negations > 0 THEN
            lines := lines || ('negations ' || negations);
        END IF;
    END IF;
    IF 'words' = ANY (guards) THEN
        lines := lines || array(
            SELECT DISTINCT 'words ' || w.word COLLATE "C" FROM unnest(guard_words) w (word)
            WHERE w.word IN (SELECT unnest(string_to_array(form, ' ')) COLLATE "C") ORDER BY 1);
    END IF;
    IF 'content' = ANY (guards) AND form <> '' THEN
        lines := lines || ('content ' || textsim._content(guard_fillers, form));
    END IF;
    RETURN lines;
END $$;

-- The guard of a normal form; NULL in a corpus without guards.
CREATE OR REPLACE FUNCTION textsim._guard(guards text[], guard_words text[], guard_fillers text[], form text)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN cardinality(guards) > 0 THEN hashtextextended(
    array_to_string(textsim._guard_lines(guards, guard_words, guard_fillers, form), E'\n') COLLATE "C", 0) END;

-- The guards that differ between two normal forms, in order.
CREATE OR REPLACE FUNCTION textsim._differing(
    guards text[], guard_words text[], guard_fillers text[], form text, other_form text)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kinds text[] := '{}';
    kind text;
BEGIN
    FOREACH kind IN ARRAY guards LOOP
        IF textsim._guard_lines(ARRAY[kind], guard_words, guard_fillers, form)
            <> textsim._guard_lines(ARRAY[kind], guard_words, guard_fillers, other_form)
        THEN
            kinds := kinds || kind;
        END IF;
    END LOOP;
    RETURN kinds;
END $$;

-- Whether a guard counts a word, so that it is never left out as a stop word.
CREATE OR REPLACE FUNCTION textsim._is_counted(guards text[], guard_words text[], guard_fillers text[], word text)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce('numbers' = ANY (guards) AND (
        word COLLATE "C" ~ '[0-9]' OR word COLLATE "C" = ANY (string_to_array(textsim._word_list('units'), '|')))
    OR 'negations' = ANY (guards) AND (
        word COLLATE "C" ~ '[않없]' OR word COLLATE "C" = ANY (string_to_array(textsim._word_list('negations'), '|'))
        OR word COLLATE "C" = ANY (regexp_split_to_array(textsim._word_list('negation_phrases'), '[ |]')))
    OR 'words' = ANY (guards) AND word COLLATE "C" = ANY (guard_words)
    OR 'content' = ANY (guards) AND (word COLLATE "C" ~ '[0-9]' OR NOT (
        word COLLATE "C" = ANY (string_to_array(textsim._word_list('fillers'), '|'))
        OR word COLLATE "C" = ANY (guard_fillers))),
    false);
