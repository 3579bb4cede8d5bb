-- name: count_asked
-- One more run that had this part in its task.
INSERT INTO asked (tenant, path, name, said, runs, at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (tenant, path, name) DO UPDATE SET runs = asked.runs + 1, at = max(asked.at, excluded.at);

-- name: add_precedent
-- What runs with these parts (names as a JSON list) had of a version: a success that used it, or an end that heeded a dead end.
INSERT INTO precedent (tenant, path, asked, entry, claim, used, since, wrote)
SELECT v.tenant, v.path, a.name, v.entry, v.claim, CASE WHEN :held OR v.worked = 0 THEN :used ELSE 0 END, a.runs - :before, :wrote
FROM json_each(:parts) j
CROSS JOIN version v ON v.id = :version AND v.tenant = :tenant
CROSS JOIN asked a ON a.tenant = v.tenant AND a.path = v.path AND a.name = j.value
WHERE true
ON CONFLICT (tenant, path, asked, entry, claim) DO UPDATE SET used = max(0.0, precedent.used + excluded.used);

-- name: take_precedent
-- A success that was none takes back what it gave, and one that is one after all gives it; heeding a dead end stays.
UPDATE precedent SET used = max(0.0, used + :used)
WHERE tenant = :tenant AND asked IN (SELECT value FROM json_each(:parts))
  AND (path, entry, claim) = (SELECT path, entry, claim FROM version WHERE id = :version AND tenant = :tenant AND worked IS NOT 0);

-- name: asked_over
-- The parts of a path that nobody has asked for the longest, beyond so many.
SELECT name FROM asked WHERE tenant = :tenant AND path = :path AND name <> '' ORDER BY at DESC, name LIMIT -1 OFFSET :kept;

-- name: forget_asked
-- One of them.
DELETE FROM asked WHERE tenant = :tenant AND path = :path AND name = :name;

-- name: forget_precedents
-- With what was known of it.
DELETE FROM precedent WHERE tenant = :tenant AND path = :path AND asked = :name;

-- name: asked_of
-- Every part that runs at some paths (ids as a JSON list) were asked.
SELECT a.path, a.name, a.said, a.runs FROM json_each(:paths) j CROSS JOIN asked a ON a.tenant = :tenant AND a.path = j.value;

-- name: precedents_of
-- What runs at some paths with some of those parts (names as a JSON list) came to use: every version that states such a claim.
SELECT x.path, x.asked, v.id, x.used, x.since, x.wrote FROM json_each(:paths) j CROSS JOIN json_each(:parts) k
CROSS JOIN precedent x ON x.tenant = :tenant AND x.path = j.value AND x.asked = k.value
CROSS JOIN version v ON v.tenant = :tenant AND v.entry = x.entry AND v.claim = x.claim;
