-- Run after a migration, in its transaction.
INSERT INTO herdbook.migration (number, name) VALUES ({number}, '{name}');
