-- On SQLite only: here an index on what every outcome changes would have each of them write a row to all indexes.
SELECT 1;
