-- name: vectors
-- The vectors of given versions (ids as a JSON list) in one space.
SELECT x.version, x.pieces FROM json_each(:versions) j
CROSS JOIN vector x ON x.tenant = :tenant AND x.space = :space AND x.version = j.value;

-- name: insert_vector
-- Two processes that embed the same version agree.
INSERT INTO vector (tenant, space, version, pieces, n) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: unembedded
-- Current versions after a given one without a vector in this space, oldest first.
SELECT v.id FROM version v
WHERE v.tenant = :tenant AND v.id > :after
  AND EXISTS (SELECT 1 FROM entry e WHERE e.tenant = v.tenant AND e.path = v.path AND e.key = v.key AND e.version = v.id)
  AND NOT EXISTS (SELECT 1 FROM vector x WHERE x.tenant = :tenant AND x.space = :space AND x.version = v.id)
ORDER BY v.id LIMIT :limit;

-- name: vectors_after
-- The vectors of a space as they came: what a scan of everything is built from, and grows by.
SELECT version, pieces, n FROM vector WHERE tenant = :tenant AND space = :space AND n > :after ORDER BY n LIMIT :limit;

-- name: vector_counts
-- How many current versions there are, and how many of them have a vector in this space: for `status`.
SELECT (SELECT count(*) FROM entry e WHERE e.tenant = :tenant),
       (SELECT count(*) FROM entry e JOIN vector x ON x.tenant = e.tenant AND x.space = :space AND x.version = e.version
        WHERE e.tenant = :tenant);

-- name: drop_other_vectors
-- Once a space is whole, what another model left behind is of no use.
DELETE FROM vector WHERE tenant = :tenant AND space <> :space;

-- name: current_of
-- Which of some versions (ids as a JSON list) are current.
SELECT v.id FROM json_each(:versions) j
CROSS JOIN version v ON v.id = j.value AND v.tenant = :tenant
CROSS JOIN entry e ON e.tenant = v.tenant AND e.path = v.path AND e.key = v.key AND e.version = v.id;
