-- The functions of 0004_measures.sql.
DROP FUNCTION textsim.levenshtein_words(text, text, double precision, double precision, double precision);
DROP FUNCTION textsim.cosine(text, text);
DROP FUNCTION textsim.containment(text, text, text, integer);
