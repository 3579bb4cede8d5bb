-- Which paths a session can have been served: the patterns of the key it was begun with, as JSON; NULL is everything.
ALTER TABLE session ADD COLUMN reach TEXT CHECK (reach IS NULL OR json_valid(reach));
