-- Which paths a session can have been served: the patterns of the key it was begun with, as JSON; NULL is everything.
ALTER TABLE session ADD COLUMN reach text CHECK (reach IS NULL OR reach::json IS NOT NULL);
