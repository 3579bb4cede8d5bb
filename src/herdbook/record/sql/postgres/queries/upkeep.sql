-- name: meta
-- A small fact about the file.
SELECT value FROM meta WHERE name = %(name)s;

-- name: set_meta
-- Set a small fact about the file.
INSERT INTO meta (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: set_meta_once
-- The first to say it has said it.
INSERT INTO meta (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO NOTHING;

-- name: counts
-- How much there is of one tenant's, by whole-table counts: for `status`, not for any path of the record.
SELECT (SELECT count(*) FROM path WHERE tenant = %(tenant)s), (SELECT count(*) FROM entry WHERE tenant = %(tenant)s),
       (SELECT count(*) FROM version WHERE tenant = %(tenant)s), (SELECT count(*) FROM session WHERE tenant = %(tenant)s),
       (SELECT count(*) FROM read WHERE tenant = %(tenant)s), (SELECT count(*) FROM outcome WHERE tenant = %(tenant)s),
       (SELECT count(*) FROM outcome_cause WHERE tenant = %(tenant)s),
       (SELECT count(*) FROM box WHERE tenant = %(tenant)s AND closed_at IS NULL);

-- name: any_sealed
-- Whether anything here was sealed, so that a missing key is known to be missing.
SELECT (EXISTS (SELECT 1 FROM version WHERE seal IS NOT NULL) OR EXISTS (SELECT 1 FROM outcome WHERE seal IS NOT NULL))::int;

-- name: triggers
-- The triggers that must be there whatever writes: those that fire for every role and in every mode.
SELECT t.tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'herdbook'::regnamespace AND NOT t.tgisinternal AND t.tgenabled = 'A' ORDER BY 1;

-- name: versions_after
-- Versions in the order of their commits, by id: what the text index has not seen.
SELECT id, tenant, entry FROM version WHERE tenant = %(tenant)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: insert_text_entry
-- An entry's place in the text index.
INSERT INTO text_entry (tenant, entry, version) VALUES (%(tenant)s, %(entry)s, %(version)s)
ON CONFLICT (tenant, entry) DO UPDATE SET version = excluded.version RETURNING entry;

-- name: delete_text
-- The older text of an entry never competes with the newer.
DELETE FROM text_token k USING (
  SELECT t.entry, unnest(string_to_array(t.tokens, ' ')) AS token FROM text_entry t
  WHERE t.tenant = %(tenant)s AND t.entry = %(id)s OFFSET 0) t
WHERE k.tenant = %(tenant)s AND k.token = t.token AND k.entry = t.entry;

-- name: insert_text
-- Tokens as the ranking code made them, and with the entry, so that they can be taken back.
WITH kept AS (UPDATE text_entry SET tokens = %(tokens)s WHERE tenant = %(tenant)s AND entry = %(id)s)
INSERT INTO text_token (tenant, token, entry)
SELECT DISTINCT %(tenant)s::bigint, token, %(id)s::bigint FROM unnest(string_to_array(%(tokens)s, ' ')) token
WHERE length(token) BETWEEN 1 AND 256;

-- name: match_text
-- Best first: the rarer a token, the more it counts. Of one that half the record holds, only the newest so many entries are looked at,
-- so that a search costs the same in a large record.
SELECT e.version FROM (
  SELECT h.entry, sum(h.weight) AS score FROM (
    SELECT k.entry, 1.0 / count(*) OVER (PARTITION BY t.token) AS weight
    FROM (SELECT DISTINCT j.token FROM jsonb_array_elements_text(%(tokens)s::jsonb) j (token)) t
    CROSS JOIN LATERAL (SELECT x.entry FROM text_token x WHERE x.tenant = %(tenant)s AND x.token = t.token
                        ORDER BY x.entry DESC LIMIT 2000) k) h
  GROUP BY h.entry ORDER BY score DESC, h.entry DESC LIMIT %(limit)s) m
JOIN text_entry e ON e.tenant = %(tenant)s AND e.entry = m.entry ORDER BY m.score DESC, m.entry DESC;

-- name: whose
-- The one door says back for which tenant it opened the transaction.
SELECT current_setting('app.tenant');

-- name: take_turn
-- One transaction at a time writes for a tenant: its ids then grow in the order of its commits, and nothing deadlocks.
SELECT folded FROM tenant WHERE id = %(tenant)s FOR NO KEY UPDATE;

-- name: turn_begun
-- For which tenant the transaction was opened. The largest of its ids: they grow in the order of its commits, and a clock set back must
-- not break that. Whether reads wait to be folded: most turns find none, and what folds them costs most where there is nothing to do.
SELECT current_setting('app.tenant'),
       greatest((SELECT id FROM version WHERE tenant = %(tenant)s ORDER BY id DESC LIMIT 1),
                (SELECT id FROM outcome WHERE tenant = %(tenant)s ORDER BY id DESC LIMIT 1),
                (SELECT id FROM attestation WHERE tenant = %(tenant)s AND id IS NOT NULL ORDER BY id DESC LIMIT 1),
                (SELECT id FROM revision WHERE tenant = %(tenant)s AND id IS NOT NULL ORDER BY id DESC LIMIT 1)),
       EXISTS (SELECT 1 FROM noted WHERE tenant = %(tenant)s);

-- name: schema_there
-- Whether db init was run in this database, and which migrations; somebody else's tables are nothing to us.
SELECT to_regclass('herdbook.migration') IS NOT NULL;

-- name: migrations
-- What was done to the schema.
SELECT number, name FROM migration ORDER BY number;

-- name: about
-- What a doctor wants to know of the server and of whom we are to it.
SELECT current_setting('server_version'), current_database()::text, pg_database_size(current_database()),
       current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'), session_user::text,
       current_user::text, r.rolsuper, r.rolbypassrls, pg_is_in_recovery(),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM pg_roles r WHERE r.rolname = session_user;
