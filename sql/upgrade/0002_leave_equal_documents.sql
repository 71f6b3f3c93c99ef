-- A step holds only what CREATE OR REPLACE cannot do: ALTER, DROP, UPDATE. The files of sql/schema run after the last one.

DELETE FROM textsim.installed;  -- the files record all objects as they are then
DROP FUNCTION textsim._record_catalog();
