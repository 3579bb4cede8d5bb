-- name: meta
-- A small fact about the file.
SELECT value FROM meta WHERE name = :name;

-- name: set_meta
-- Set a small fact about the file.
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: set_meta_once
-- The first to say it has said it.
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- name: counts
-- How much there is of one tenant's, by whole-table counts: for `status`, not for any path of the record.
SELECT (SELECT count(*) FROM path WHERE tenant = :tenant), (SELECT count(*) FROM entry WHERE tenant = :tenant),
       (SELECT count(*) FROM version WHERE tenant = :tenant), (SELECT count(*) FROM session WHERE tenant = :tenant),
       (SELECT count(*) FROM read WHERE tenant = :tenant), (SELECT count(*) FROM outcome WHERE tenant = :tenant),
       (SELECT count(*) FROM outcome_cause WHERE tenant = :tenant),
       (SELECT count(*) FROM box WHERE tenant = :tenant AND closed_at IS NULL);

-- name: any_sealed
-- Whether anything here was sealed, so that a missing key is known to be missing.
SELECT EXISTS (SELECT 1 FROM version WHERE seal IS NOT NULL) OR EXISTS (SELECT 1 FROM outcome WHERE seal IS NOT NULL);

-- name: triggers
-- The triggers that must be there whatever writes.
SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name;

-- name: versions_after
-- Versions in the order of their commits, by id: what the text index has not seen.
SELECT id, tenant, entry FROM version WHERE id > :after ORDER BY id LIMIT :limit;

-- name: insert_text_entry
-- An entry's place in the text index.
INSERT INTO text_entry (tenant, entry, version) VALUES (:tenant, :entry, :version)
ON CONFLICT (tenant, entry) DO UPDATE SET version = excluded.version RETURNING id;

-- name: delete_text
-- The older text of an entry never competes with the newer.
DELETE FROM text_index WHERE rowid = :id;

-- name: insert_text
-- Tokens as the ranking code made them.
INSERT INTO text_index (rowid, tokens) VALUES (:id, :tokens);

-- name: match_text
-- Best first; only entries of this tenant, only the version that was indexed.
SELECT t.version FROM text_index x JOIN text_entry t ON t.id = x.rowid
WHERE text_index MATCH (SELECT group_concat('"' || replace(j.value, '"', '""') || '"', ' OR ') FROM json_each(:tokens) j)
  AND t.tenant = :tenant ORDER BY rank LIMIT :limit;

-- name: last_version
-- Ids grow in the order of commits; a clock set back must not break that.
SELECT max(coalesce((SELECT max(id) FROM version), 0), coalesce((SELECT max(id) FROM outcome), 0),
           coalesce((SELECT id FROM attestation WHERE rowid = (SELECT max(rowid) FROM attestation)), 0),
           coalesce((SELECT id FROM revision WHERE rowid = (SELECT max(rowid) FROM revision)), 0));
