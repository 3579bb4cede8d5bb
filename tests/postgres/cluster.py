"""What stands in for a cluster: a plain PostgreSQL in which the calls that spread tables are functions.

They write down what they were asked, and refuse what a cluster refuses by the rules it documents: every key holds the column that
a table is spread by; that is of the same type as its neighbour's; parents come first; triggers are by row, where they may be.
"""

from __future__ import annotations

from typing import Any

import psycopg

CALLS = """
CREATE TABLE pg_catalog.pg_dist_partition (
  logicalrelid regclass PRIMARY KEY, partmethod "char", partkey text, neighbour regclass, n serial);
CREATE FUNCTION pg_catalog.refuse_unfit(spread regclass, key text, beside regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  wrong text;
BEGIN
  SELECT i.indexrelid::regclass::text INTO wrong FROM pg_index i WHERE i.indrelid = spread AND i.indisunique AND NOT EXISTS (
    SELECT 1 FROM pg_attribute a WHERE a.attrelid = spread AND a.attname = key AND a.attnum = ANY (i.indkey));
  IF key IS NOT NULL AND wrong IS NOT NULL THEN RAISE EXCEPTION '% does not hold %', wrong, key; END IF;
  SELECT t.tgname INTO wrong FROM pg_trigger t WHERE t.tgrelid = spread AND NOT t.tgisinternal
    AND (tgtype & 1 = 0 OR current_setting('citus.enable_unsafe_triggers', true) IS DISTINCT FROM 'on' OR key IS NULL);
  IF wrong IS NOT NULL THEN RAISE EXCEPTION 'the trigger % cannot be spread', wrong; END IF;
  SELECT c.conname INTO wrong FROM pg_constraint c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.confrelid
    WHERE c.conrelid = spread AND c.contype = 'f' AND (p.logicalrelid IS NULL OR (p.partkey IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM unnest(c.conkey, c.confkey) k (mine, theirs)
      JOIN pg_attribute m ON m.attrelid = c.conrelid AND m.attnum = k.mine
      JOIN pg_attribute t ON t.attrelid = c.confrelid AND t.attnum = k.theirs
      WHERE m.attname = key AND t.attname = p.partkey AND m.atttypid = t.atttypid)));
  IF wrong IS NOT NULL THEN RAISE EXCEPTION 'the foreign key % would cross nodes', wrong; END IF;
  IF EXISTS (SELECT 1 FROM pg_attribute a, pg_attribute b, pg_dist_partition p WHERE p.logicalrelid = beside AND
    a.attrelid = spread AND a.attname = key AND b.attrelid = beside AND b.attname = p.partkey AND a.atttypid <> b.atttypid)
  THEN RAISE EXCEPTION '% lies beside a table of another type', spread; END IF;
END $$;
CREATE FUNCTION pg_catalog.create_distributed_table(name text, key text, colocate_with text DEFAULT 'default') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  beside regclass := nullif(colocate_with, 'default')::regclass;
BEGIN
  PERFORM pg_catalog.refuse_unfit(name::regclass, key, beside);
  INSERT INTO pg_dist_partition (logicalrelid, partmethod, partkey, neighbour) VALUES (name::regclass, 'h', key, beside);
END $$;
CREATE FUNCTION pg_catalog.create_reference_table(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_catalog.refuse_unfit(name::regclass, NULL, NULL);
  INSERT INTO pg_dist_partition (logicalrelid, partmethod) VALUES (name::regclass, 'n');
END $$;
"""


def make(admin: psycopg.Connection[Any]) -> None:
    """The calls, in this database's catalogue, where a cluster has its own."""
    admin.execute("SET allow_system_table_mods = on")
    admin.execute(CALLS.encode())


def spread(admin: psycopg.Connection[Any]) -> list[tuple[str, str | None, str | None]]:
    """Table, column and neighbour, in the order of the calls."""
    found = admin.execute(
        "SELECT logicalrelid::text, partkey, neighbour::text FROM pg_catalog.pg_dist_partition ORDER BY n"
    ).fetchall()
    return [(table.removeprefix("herdbook."), key, beside and beside.removeprefix("herdbook.")) for table, key, beside in found]
