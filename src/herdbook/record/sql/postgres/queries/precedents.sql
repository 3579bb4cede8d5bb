-- name: count_asked
-- One more run that had this part in its task.
INSERT INTO asked (tenant, path, name, said, runs, at)
SELECT tenant, path, name, said, 1, at
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[]) u (tenant, path, name, said, at)
ON CONFLICT (tenant, path, name) DO UPDATE SET runs = asked.runs + 1, at = greatest(asked.at, excluded.at);

-- name: add_precedent
-- What runs with these parts (names as a JSON list) had of a version: a success that used it, or an end that heeded a dead end.
INSERT INTO precedent (tenant, path, asked, entry, claim, used, since, wrote)
SELECT v.tenant, v.path, a.name, v.entry, v.claim,
       CASE WHEN %(held)s::bigint = 1 OR v.worked = 0 THEN %(used)s::float8 ELSE 0 END, a.runs - %(before)s::float8, %(wrote)s::smallint
FROM jsonb_array_elements_text(%(parts)s::jsonb) j (value)
JOIN version v ON v.id = %(version)s AND v.tenant = %(tenant)s
JOIN asked a ON a.tenant = v.tenant AND a.path = v.path AND a.name = j.value
ON CONFLICT (tenant, path, asked, entry, claim) DO UPDATE SET used = greatest(0.0, precedent.used + excluded.used);

-- name: take_precedent
-- A success that was none takes back what it gave, and one that is one after all gives it; heeding a dead end stays.
UPDATE precedent SET used = greatest(0.0, used + %(used)s::float8)
WHERE tenant = %(tenant)s AND asked IN (SELECT j.value FROM jsonb_array_elements_text(%(parts)s::jsonb) j (value))
  AND (path, entry, claim) = (SELECT v.path, v.entry, v.claim FROM version v
    WHERE v.id = %(version)s AND v.tenant = %(tenant)s AND v.worked IS DISTINCT FROM 0);

-- name: asked_over
-- The parts of a path that nobody has asked for the longest, beyond so many.
SELECT name FROM asked WHERE tenant = %(tenant)s AND path = %(path)s AND name <> '' ORDER BY at DESC, name OFFSET %(kept)s;

-- name: forget_asked
-- One of them.
DELETE FROM asked WHERE tenant = %(tenant)s AND path = %(path)s AND name = %(name)s;

-- name: forget_precedents
-- With what was known of it.
DELETE FROM precedent WHERE tenant = %(tenant)s AND path = %(path)s AND asked = %(name)s;

-- name: asked_of
-- Every part that runs at some paths (ids as a JSON list) were asked.
SELECT a.path, a.name, a.said, a.runs
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
JOIN asked a ON a.tenant = %(tenant)s AND a.path = j.value;

-- name: precedents_of
-- What runs at some paths with some of those parts (names as a JSON list) came to use: every version that states such a claim.
SELECT x.path, x.asked, v.id, x.used, x.since, x.wrote
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(paths)s::jsonb) a OFFSET 0) j (value)
CROSS JOIN jsonb_array_elements_text(%(parts)s::jsonb) k (value)
JOIN precedent x ON x.tenant = %(tenant)s AND x.path = j.value AND x.asked = k.value
JOIN version v ON v.tenant = %(tenant)s AND v.entry = x.entry AND v.claim = x.claim;
