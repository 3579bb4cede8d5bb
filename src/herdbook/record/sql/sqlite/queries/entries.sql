-- name: path_id
-- A path is stored once; everything else refers to it by number.
SELECT id FROM path WHERE tenant = :tenant AND path = :path;

-- name: path_ids
-- Of several paths (a JSON list), as far as they are there.
SELECT p.path, p.id FROM json_each(:paths) j CROSS JOIN path p ON p.tenant = :tenant AND p.path = j.value;

-- name: insert_path
-- Under the write lock, so that two writers of a new path agree on its number.
INSERT INTO path (tenant, id, path) VALUES (:tenant, :id, :path);

-- name: before_write
-- All that a write has to know, asked at once: what its id came to, whether it made a version or re-affirmed one; the path; the head and
-- what its current version asserts; and the record of the claim, which an old claim finds again.
SELECT x.body, x.answered, p.id, e.id, e.number, e.version, e.claim, e.standing_version, v.why, v.links, v.expires_at,
       c.digest, c.confidence, c.observed, c.corroborated, c.held, c.failed, c.failed_since
FROM (SELECT 1 AS one) f
LEFT JOIN (SELECT body, answered FROM version WHERE tenant = ?1 AND request = ?2
           UNION ALL SELECT digest, answer FROM request WHERE tenant = ?1 AND verb = 'write' AND id = ?2) x ON 1
LEFT JOIN path p ON p.tenant = ?1 AND p.path = ?3
LEFT JOIN entry e ON e.tenant = ?1 AND e.path = p.id AND e.key = ?4
LEFT JOIN version v ON v.tenant = e.tenant AND v.id = e.version
LEFT JOIN claim c ON c.tenant = ?1 AND c.path = p.id AND c.entry = e.id AND c.digest = ?5;

-- name: insert_entry
-- The head of a new entry.
INSERT INTO entry (tenant, id, path, key, number, version, claim, touched)
VALUES (?, ?, ?, ?, 1, ?, ?, (SELECT id FROM latest));

-- name: supersede_entry
-- Move the head on by one; a trigger refuses any other step.
UPDATE entry SET number = :number, version = :version, claim = :claim, standing_version = :standing,
                 touched = (SELECT id FROM latest)
WHERE tenant = :tenant AND path = :path AND key = :key;

-- name: insert_version
-- Append-only; a trigger refuses a gap in the numbers.
INSERT INTO version (tenant, id, entry, path, key, number, claim, value, why, kind, worked, confidence, applies_when, expires_at, links,
                     origin, author, identity, session, box, at, request, body, answered, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_claim
-- A changed claim starts over at the confidence its author states. It needs no stamp: its entry has one.
INSERT INTO claim (tenant, path, entry, digest, initial, confidence) VALUES (?, ?, ?, ?, ?, ?);

-- name: affirm_claim
-- The same claim for the same reason is counted and dated, not stored again.
UPDATE claim SET affirmed = affirmed + 1, affirmed_at = :at
WHERE tenant = :tenant AND path = :path AND entry = :entry AND digest = :claim;

-- name: first_answer
-- What was answered to this id before, if anything.
SELECT digest, answer FROM request WHERE tenant = :tenant AND verb = :verb AND id = :id;

-- name: keep_answer
-- Kept for ever: an outcome retried after a year must not count twice.
INSERT INTO request (tenant, verb, id, digest, answer) VALUES (:tenant, :verb, :id, :digest, :answer);

-- name: head
-- One entry with the live trust of its current claim, and how its entity's runs go at all.
SELECT p.outcomes, p.successes, e.id, e.version, e.standing_version, c.digest, c.confidence, c.moves, c.recalls, c.observed, c.corroborated,
       c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref, c.last_at
FROM entry e
CROSS JOIN claim c ON c.tenant = e.tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim
CROSS JOIN path p ON p.tenant = e.tenant AND p.id = e.path
WHERE e.tenant = :tenant AND e.path = :path AND e.key = :key;

-- name: heads
-- All entries of some paths (ids as a JSON list): cost follows the entity, not the record. CROSS JOIN keeps the list outermost.
-- Only what decides an entry's place: a thousand rows are read for forty that are shown, and every column counts.
SELECT e.version, e.standing_version, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.failed_since, c.affirmed_at,
       c.held, c.failed
FROM json_each(:paths) j
CROSS JOIN entry e ON e.tenant = :tenant AND e.path = j.value
CROSS JOIN claim c ON c.tenant = :tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim;

-- name: heads_stamp
-- Where the record stands, how many entries these paths have, and which of those were written since a stamp: one scan of their rows.
SELECT (SELECT id FROM latest), count(*), json_group_array(e.id) FILTER (WHERE e.touched >= :since)
FROM json_each(:paths) j CROSS JOIN entry e ON e.tenant = :tenant AND e.path = j.value;

-- name: heads_whole
-- As `heads`, each with its entry.
SELECT e.id, e.version, e.standing_version, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.failed_since, c.affirmed_at,
       c.held, c.failed
FROM json_each(:paths) j
CROSS JOIN entry e ON e.tenant = :tenant AND e.path = j.value
CROSS JOIN claim c ON c.tenant = :tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim;

-- name: heads_touched
-- The heads of those, and of what has a claim that was moved since the stamp.
SELECT e.id, e.version, e.standing_version, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.failed_since, c.affirmed_at,
       c.held, c.failed
FROM (SELECT w.value AS id FROM json_each(:entries) w
      UNION SELECT c.entry FROM json_each(:paths) j
      CROSS JOIN claim c ON c.tenant = :tenant AND c.path = j.value AND c.touched >= :since AND c.touched > 0) t
CROSS JOIN version v ON v.tenant = :tenant AND v.entry = t.id AND v.number = 1
CROSS JOIN entry e ON e.tenant = :tenant AND e.path = v.path AND e.key = v.key
CROSS JOIN claim c ON c.tenant = :tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim;

-- name: entries_of_gone
-- The entries that name lost versions. Walks all entries: only a damaged record has to be asked this.
SELECT e.version, p.path, e.key, e.number FROM entry e CROSS JOIN path p ON p.tenant = e.tenant AND p.id = e.path
WHERE e.tenant = :tenant AND e.version IN (SELECT value FROM json_each(:versions));

-- name: path_ids_below
-- A path and everything under it: one range of the path index.
SELECT id, path FROM path WHERE tenant = :tenant AND (path = :path OR (path > :low AND path < :high));

-- name: trust_of
-- The trust behind given versions (ids as a JSON list), whether they are current or not.
SELECT p.path, e.key, e.id, v.id, e.standing_version, c.digest, c.confidence, c.moves, c.recalls, c.observed, c.corroborated,
       c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref, c.last_at
FROM json_each(:versions) j
CROSS JOIN version v ON v.id = j.value AND v.tenant = :tenant
CROSS JOIN entry e ON e.tenant = :tenant AND e.path = v.path AND e.key = v.key
CROSS JOIN path p ON p.tenant = :tenant AND p.id = v.path
CROSS JOIN claim c ON c.tenant = :tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim;

-- name: versions
-- The texts of given versions (ids as a JSON list), with what their seals cover.
SELECT v.id, v.entry, v.claim, p.path, v.key, v.number, v.value, v.why, v.kind, v.worked, v.confidence, v.applies_when,
       v.expires_at, v.links, v.origin, v.author, v.identity, v.session, v.box, v.at, v.request, v.seal
FROM json_each(:versions) j
CROSS JOIN version v ON v.id = j.value AND v.tenant = :tenant
CROSS JOIN path p ON p.tenant = :tenant AND p.id = v.path;

-- name: version_ids
-- An entry's versions, oldest first.
SELECT v.id, v.number FROM entry e
JOIN version v ON v.tenant = e.tenant AND v.entry = e.id
WHERE e.tenant = :tenant AND e.path = :path AND e.key = :key ORDER BY v.number;

-- name: version_id
-- One version of an entry by its number.
SELECT v.id FROM entry e
JOIN version v ON v.tenant = e.tenant AND v.entry = e.id
WHERE e.tenant = :tenant AND e.path = :path AND e.key = :key AND v.number = :number;

-- name: base_rates
-- How often each entity's runs succeed at all.
SELECT p.path, p.outcomes, p.successes FROM json_each(:paths) j CROSS JOIN path p ON p.tenant = :tenant AND p.path = j.value;

-- name: list_entries
-- A page of entries in path and key order, after a given (path, key).
SELECT p.path, e.key, e.id, e.version, e.standing_version, c.digest, c.confidence, c.moves, c.recalls, c.observed, c.corroborated,
       c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref, c.last_at
FROM path p
CROSS JOIN entry e ON e.tenant = p.tenant AND e.path = p.id
CROSS JOIN claim c ON c.tenant = e.tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim
WHERE p.tenant = :tenant AND p.path >= :from_path AND p.path < :high AND (:exact = '' OR p.path = :exact OR p.path > :low)
  AND (p.path > :from_path OR e.key > :from_key)
ORDER BY p.path, e.key LIMIT :limit;

-- name: paths_from
-- Neighbours of a path in the index, for "did you mean".
SELECT path FROM path WHERE tenant = :tenant AND path >= :path ORDER BY path LIMIT :limit;

-- name: paths_before
-- Neighbours on the other side.
SELECT path FROM path WHERE tenant = :tenant AND path < :path ORDER BY path DESC LIMIT :limit;

-- name: keys_of_path
-- Keys of one path, for "did you mean".
SELECT key FROM entry WHERE tenant = :tenant AND path = :path ORDER BY key LIMIT :limit;

-- name: stood_before
-- Superseding never empties what is known: the first version of the newest earlier claim that stands, for given versions (a JSON
-- list). The first, since a later one may only restate it.
SELECT j.value, (SELECT min(w.id) FROM version w WHERE w.tenant = :tenant AND w.entry = p.entry AND w.claim = (
    SELECT v.claim FROM version v
    CROSS JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim
    WHERE v.tenant = :tenant AND v.entry = p.entry AND v.id < p.id
      AND (c.observed > 0 OR c.corroborated > 0) AND c.failed_since < :contested
    ORDER BY v.id DESC LIMIT 1))
FROM json_each(:versions) j CROSS JOIN version p ON p.id = j.value AND p.tenant = :tenant;

-- name: origin_of
-- Where a version came from.
SELECT origin FROM version WHERE id = :version AND tenant = :tenant;
