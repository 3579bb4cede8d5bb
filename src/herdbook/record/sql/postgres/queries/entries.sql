-- name: path_id
-- A path is stored once; everything else refers to it by number.
SELECT id FROM path WHERE tenant = %(tenant)s AND path = %(path)s;

-- name: path_ids
-- Of several paths (a JSON list), as far as they are there.
SELECT p.path, p.id FROM (SELECT a FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
JOIN path p ON p.tenant = %(tenant)s AND p.path = j.value;

-- name: insert_path
-- Under the write lock, so that two writers of a new path agree on its number.
INSERT INTO path (tenant, id, path) VALUES (%(tenant)s, %(id)s, %(path)s);

-- name: before_write
-- All that writes have to know, asked at once, a row for each: what its id came to, whether it made a version or re-affirmed one; the
-- path; the head and what its current version asserts; and the record of the claim, which an old claim finds again.
SELECT x.body, x.answered, p.id, e.id, e.number, e.version, e.claim, e.standing_version, v.why, v.links, v.expires_at,
       c.digest, c.confidence, c.observed, c.corroborated, c.held, c.failed, c.failed_since
FROM (SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::bytea[]) WITH ORDINALITY OFFSET 0)
       f (tenant, request, path, key, claim, nth)
LEFT JOIN LATERAL (SELECT w.body, w.answered FROM version w WHERE w.tenant = f.tenant AND w.request = f.request
                   UNION ALL SELECT r.digest, r.answer FROM request r
                   WHERE r.tenant = f.tenant AND r.verb = 'write' AND r.id = f.request OFFSET 0) x ON true
LEFT JOIN LATERAL (SELECT q.id FROM path q WHERE q.tenant = f.tenant AND q.path = f.path OFFSET 0) p ON true
LEFT JOIN LATERAL (SELECT h.* FROM entry h WHERE h.tenant = f.tenant AND h.path = p.id AND h.key = f.key OFFSET 0) e ON true
LEFT JOIN LATERAL (SELECT w.why, w.links, w.expires_at FROM version w WHERE w.tenant = f.tenant AND w.id = e.version OFFSET 0) v ON true
LEFT JOIN LATERAL (SELECT d.* FROM claim d WHERE d.tenant = f.tenant AND d.path = p.id AND d.entry = e.id AND d.digest = f.claim
                   OFFSET 0) c ON true
ORDER BY f.nth;

-- name: insert_entry
-- The head of a new entry.
INSERT INTO entry (tenant, id, path, key, number, version, claim)
SELECT t.tenant, t.id, t.path, t.key, 1, t.version, t.claim
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::bytea[]) t (tenant, id, path, key, version, claim);

-- name: supersede_entry
-- Move the head on by one; a trigger refuses any other step.
UPDATE entry SET number = %(number)s, version = %(version)s, claim = %(claim)s, standing_version = %(standing)s
WHERE tenant = %(tenant)s AND path = %(path)s AND key = %(key)s;

-- name: insert_version
-- Append-only; a trigger refuses a gap in the numbers.
INSERT INTO version (tenant, id, entry, path, key, number, claim, value, why, kind, worked, confidence, applies_when, expires_at, links,
                     origin, author, identity, session, box, at, request, body, answered, seal)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::bytea[], %s::text[], %s::text[],
                     %s::text[], %s::smallint[], %s::float8[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[],
                     %s::text[], %s::text[], %s::bigint[], %s::text[], %s::bytea[], %s::text[], %s::bytea[]);

-- name: insert_claim
-- A changed claim starts over at the confidence its author states.
INSERT INTO claim (tenant, path, entry, digest, initial, confidence)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[], %s::float8[], %s::float8[]);

-- name: affirm_claim
-- The same claim for the same reason is counted and dated, not stored again.
UPDATE claim SET affirmed = affirmed + 1, affirmed_at = %(at)s
WHERE tenant = %(tenant)s AND path = %(path)s AND entry = %(entry)s AND digest = %(claim)s;

-- name: first_answer
-- What was answered to this id before, if anything.
SELECT digest, answer FROM request WHERE tenant = %(tenant)s AND verb = %(verb)s AND id = %(id)s;

-- name: keep_answer
-- Kept for ever: an outcome retried after a year must not count twice.
INSERT INTO request (tenant, verb, id, digest, answer) VALUES (%(tenant)s, %(verb)s, %(id)s, %(digest)s, %(answer)s);

-- name: head
-- One entry with the live trust of its current claim, and how its entity's runs go at all.
SELECT p.outcomes, p.successes, e.id, e.version, e.standing_version, c.digest, c.confidence, c.moves, c.recalls, c.observed, c.corroborated,
       c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref, c.last_at
FROM entry e
JOIN claim c ON c.tenant = e.tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim
JOIN path p ON p.tenant = e.tenant AND p.id = e.path
WHERE e.tenant = %(tenant)s AND e.path = %(path)s AND e.key = %(key)s;

-- name: heads
-- All entries of some paths (ids as a JSON list): cost follows the entity, not the record.
-- Only what decides an entry's place: a thousand rows are read for forty that are shown, and every column counts.
SELECT e.version, e.standing_version, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.failed_since, c.affirmed_at,
       c.held, c.failed
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
JOIN entry e ON e.tenant = %(tenant)s AND e.path = j.value
JOIN claim c ON c.tenant = %(tenant)s AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim;

-- name: heads_stamp
-- Where the record stands, how many entries these paths have, and which of those were written since a stamp: one scan of their rows.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, count(*),
       coalesce(json_agg(e.id) FILTER (WHERE e.touched >= %(since)s), '[]')::text
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
JOIN entry e ON e.tenant = %(tenant)s AND e.path = j.value;

-- name: heads_whole
-- As `heads`, each with its entry.
SELECT e.id, e.version, e.standing_version, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.failed_since, c.affirmed_at,
       c.held, c.failed
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
JOIN entry e ON e.tenant = %(tenant)s AND e.path = j.value
JOIN claim c ON c.tenant = %(tenant)s AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim;

-- name: heads_touched
-- The heads of those, and of what has a claim that was moved since the stamp; an index on that would cost every outcome more.
SELECT e.id, e.version, e.standing_version, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.failed_since, c.affirmed_at,
       c.held, c.failed
FROM (SELECT w::bigint AS id FROM jsonb_array_elements_text(%(entries)s::jsonb) w
      UNION SELECT c.entry FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
      JOIN claim c ON c.tenant = %(tenant)s AND c.path = j.value AND c.touched >= %(since)s OFFSET 0) t
JOIN version v ON v.tenant = %(tenant)s AND v.entry = t.id AND v.number = 1
JOIN entry e ON e.tenant = %(tenant)s AND e.path = v.path AND e.key = v.key
JOIN claim c ON c.tenant = %(tenant)s AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim;

-- name: entries_of_gone
-- The entries that name lost versions. Walks all entries: only a damaged record has to be asked this.
SELECT e.version, p.path, e.key, e.number FROM entry e JOIN path p ON p.tenant = e.tenant AND p.id = e.path
WHERE e.tenant = %(tenant)s AND e.version IN (SELECT j.value FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb) a OFFSET 0) j (value));

-- name: path_ids_below
-- A path and everything under it: one range of the path index.
SELECT id, path FROM path WHERE tenant = %(tenant)s AND (path = %(path)s OR (path > %(low)s AND path < %(high)s));

-- name: trust_of
-- The trust behind given versions (ids as a JSON list), whether they are current or not.
SELECT p.path, e.key, e.id, v.id, e.standing_version, c.digest, c.confidence, c.moves, c.recalls, c.observed, c.corroborated,
       c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref, c.last_at
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb) a OFFSET 0) j (value)
JOIN version v ON v.id = j.value AND v.tenant = %(tenant)s
JOIN entry e ON e.tenant = %(tenant)s AND e.path = v.path AND e.key = v.key
JOIN path p ON p.tenant = %(tenant)s AND p.id = v.path
JOIN claim c ON c.tenant = %(tenant)s AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim;

-- name: versions
-- The texts of given versions (ids as a JSON list), with what their seals cover.
SELECT v.id, v.entry, v.claim, p.path, v.key, v.number, v.value, v.why, v.kind, v.worked, v.confidence, v.applies_when,
       v.expires_at, v.links, v.origin, v.author, v.identity, v.session, v.box, v.at, v.request, v.seal
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb) a OFFSET 0) j (value)
JOIN version v ON v.id = j.value AND v.tenant = %(tenant)s
JOIN path p ON p.tenant = %(tenant)s AND p.id = v.path;

-- name: version_ids
-- An entry's versions, oldest first.
SELECT v.id, v.number FROM entry e
JOIN version v ON v.tenant = e.tenant AND v.entry = e.id
WHERE e.tenant = %(tenant)s AND e.path = %(path)s AND e.key = %(key)s ORDER BY v.number;

-- name: version_id
-- One version of an entry by its number.
SELECT v.id FROM entry e
JOIN version v ON v.tenant = e.tenant AND v.entry = e.id
WHERE e.tenant = %(tenant)s AND e.path = %(path)s AND e.key = %(key)s AND v.number = %(number)s;

-- name: base_rates
-- How often each entity's runs succeed at all.
SELECT p.path, p.outcomes, p.successes FROM jsonb_array_elements_text(%(paths)s::jsonb) j (value) JOIN path p ON p.tenant = %(tenant)s AND p.path = j.value;

-- name: list_entries
-- A page of entries in path and key order, after a given (path, key).
SELECT p.path, e.key, e.id, e.version, e.standing_version, c.digest, c.confidence, c.moves, c.recalls, c.observed, c.corroborated,
       c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref, c.last_at
FROM path p
JOIN entry e ON e.tenant = p.tenant AND e.path = p.id
JOIN claim c ON c.tenant = e.tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim
WHERE p.tenant = %(tenant)s AND p.path >= %(from_path)s AND p.path < %(high)s AND (%(exact)s::text = '' OR p.path = %(exact)s OR p.path > %(low)s)
  AND (p.path > %(from_path)s OR e.key > %(from_key)s)
ORDER BY p.path, e.key LIMIT %(limit)s;

-- name: paths_from
-- Neighbours of a path in the index, for "did you mean".
SELECT path FROM path WHERE tenant = %(tenant)s AND path >= %(path)s ORDER BY path LIMIT %(limit)s;

-- name: paths_before
-- Neighbours on the other side.
SELECT path FROM path WHERE tenant = %(tenant)s AND path < %(path)s ORDER BY path DESC LIMIT %(limit)s;

-- name: keys_of_path
-- Keys of one path, for "did you mean".
SELECT key FROM entry WHERE tenant = %(tenant)s AND path = %(path)s ORDER BY key LIMIT %(limit)s;

-- name: stood_before
-- Superseding never empties what is known: the first version of the newest earlier claim that stands, for given versions (a JSON
-- list). The first, since a later one may only restate it.
SELECT p.id, (SELECT min(w.id) FROM version w WHERE w.tenant = %(tenant)s AND w.entry = p.entry AND w.claim = (
    SELECT v.claim FROM version v
    JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim
    WHERE v.tenant = %(tenant)s AND v.entry = p.entry AND v.id < p.id
      AND (c.observed > 0 OR c.corroborated > 0) AND c.failed_since < %(contested)s
    ORDER BY v.id DESC LIMIT 1))
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb) a OFFSET 0) j (value) JOIN version p ON p.id = j.value AND p.tenant = %(tenant)s;

-- name: origin_of
-- Where a version came from.
SELECT origin FROM version WHERE id = %(version)s AND tenant = %(tenant)s;
