-- name: vectors
-- The vectors of given versions (ids as a JSON list) in one space.
SELECT x.version, x.pieces FROM jsonb_array_elements_text(%(versions)s::jsonb) j (value)
JOIN vector x ON x.tenant = %(tenant)s AND x.space = %(space)s AND x.version = j.value::bigint;

-- name: insert_vector
-- Two processes that embed the same version agree.
INSERT INTO vector (tenant, space, version, pieces, n) SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bytea[], %s::bigint[]) ON CONFLICT DO NOTHING;

-- name: unembedded
-- Current versions after a given one without a vector in this space, oldest first.
SELECT v.id FROM version v
WHERE v.tenant = %(tenant)s AND v.id > %(after)s
  AND EXISTS (SELECT 1 FROM entry e WHERE e.tenant = v.tenant AND e.path = v.path AND e.key = v.key AND e.version = v.id)
  AND NOT EXISTS (SELECT 1 FROM vector x WHERE x.tenant = %(tenant)s AND x.space = %(space)s AND x.version = v.id)
ORDER BY v.id LIMIT %(limit)s;

-- name: vectors_after
-- The vectors of a space as they came: what a scan of everything is built from, and grows by.
SELECT version, pieces, n FROM vector WHERE tenant = %(tenant)s AND space = %(space)s AND n > %(after)s ORDER BY n LIMIT %(limit)s;

-- name: vector_counts
-- How many current versions there are, and how many of them have a vector in this space: for `status`.
SELECT (SELECT count(*) FROM entry e WHERE e.tenant = %(tenant)s),
       (SELECT count(*) FROM entry e JOIN vector x ON x.tenant = e.tenant AND x.space = %(space)s AND x.version = e.version
        WHERE e.tenant = %(tenant)s);

-- name: drop_other_vectors
-- Once a space is whole, what another model left behind is of no use.
DELETE FROM vector WHERE tenant = %(tenant)s AND space <> %(space)s;

-- name: current_of
-- Which of some versions (ids as a JSON list) are current.
SELECT v.id FROM jsonb_array_elements_text(%(versions)s::jsonb) j (value)
JOIN version v ON v.id = j.value::bigint AND v.tenant = %(tenant)s
JOIN entry e ON e.tenant = v.tenant AND e.path = v.path AND e.key = v.key AND e.version = v.id;
