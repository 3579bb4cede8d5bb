-- name: changes
-- What was written, how runs ended and what was said of that, after a place, in the order of commits.
(SELECT v.id, 'version', p.path, v.key, v.number, v.kind, v.author, v.identity, v.session, v.box, v.at
 FROM version v JOIN path p ON p.tenant = v.tenant AND p.id = v.path
 WHERE v.tenant = %(tenant)s AND v.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_version x WHERE x.tenant = v.tenant AND x.version = v.id) ORDER BY v.id LIMIT %(limit)s)
UNION ALL
(SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM outcome o JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE o.tenant = %(tenant)s AND o.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY o.id LIMIT %(limit)s)
UNION ALL
(SELECT a.id, 'attestation', s.entity, o.ref, NULL, a.result, a.identity, a.identity, o.session, o.box, a.at
 FROM attestation a JOIN outcome o ON o.tenant = a.tenant AND o.id = a.outcome
 JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE a.tenant = %(tenant)s AND a.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY a.id LIMIT %(limit)s)
UNION ALL
(SELECT r.id, 'revision', s.entity, o.ref, NULL, r.type, r.identity, r.identity, o.session, o.box, r.at
 FROM revision r JOIN outcome o ON o.tenant = r.tenant AND o.id = r.outcome
 JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE r.tenant = %(tenant)s AND r.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY r.id LIMIT %(limit)s)
ORDER BY 1 LIMIT %(limit)s;

-- name: changes_below
-- The same of a path and what is below it, without a look at anything else: what it costs depends on those paths.
(SELECT v.id, 'version', p.path, v.key, v.number, v.kind, v.author, v.identity, v.session, v.box, v.at
 FROM path p JOIN entry e ON e.tenant = p.tenant AND e.path = p.id
 JOIN version v ON v.tenant = e.tenant AND v.entry = e.id AND v.id > %(after)s
 WHERE p.tenant = %(tenant)s AND (p.path = %(path)s OR (p.path > %(low)s AND p.path < %(high)s))
  AND NOT EXISTS (SELECT 1 FROM erased_version x WHERE x.tenant = v.tenant AND x.version = v.id) ORDER BY v.id LIMIT %(limit)s)
UNION ALL
(SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM session s JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id > %(after)s
 WHERE s.tenant = %(tenant)s AND (s.entity = %(path)s OR (s.entity > %(low)s AND s.entity < %(high)s))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY o.id LIMIT %(limit)s)
UNION ALL
(SELECT a.id, 'attestation', s.entity, o.ref, NULL, a.result, a.identity, a.identity, o.session, o.box, a.at
 FROM session s JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 JOIN attestation a ON a.tenant = o.tenant AND a.outcome = o.id AND a.id > %(after)s
 WHERE s.tenant = %(tenant)s AND (s.entity = %(path)s OR (s.entity > %(low)s AND s.entity < %(high)s))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY a.id LIMIT %(limit)s)
UNION ALL
(SELECT r.id, 'revision', s.entity, o.ref, NULL, r.type, r.identity, r.identity, o.session, o.box, r.at
 FROM session s JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 JOIN revision r ON r.tenant = o.tenant AND r.outcome = o.id AND r.id > %(after)s
 WHERE s.tenant = %(tenant)s AND (s.entity = %(path)s OR (s.entity > %(low)s AND s.entity < %(high)s))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY r.id LIMIT %(limit)s)
ORDER BY 1 LIMIT %(limit)s;

-- name: changes_of_own
-- The same of one's own runs that are about no path.
(SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM session s JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id > %(after)s
 WHERE s.tenant = %(tenant)s AND s.entity IS NULL AND s.identity = %(identity)s
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY o.id LIMIT %(limit)s)
UNION ALL
(SELECT a.id, 'attestation', s.entity, o.ref, NULL, a.result, a.identity, a.identity, o.session, o.box, a.at
 FROM session s JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 JOIN attestation a ON a.tenant = o.tenant AND a.outcome = o.id AND a.id > %(after)s
 WHERE s.tenant = %(tenant)s AND s.entity IS NULL AND s.identity = %(identity)s
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY a.id LIMIT %(limit)s)
UNION ALL
(SELECT r.id, 'revision', s.entity, o.ref, NULL, r.type, r.identity, r.identity, o.session, o.box, r.at
 FROM session s JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 JOIN revision r ON r.tenant = o.tenant AND r.outcome = o.id AND r.id > %(after)s
 WHERE s.tenant = %(tenant)s AND s.entity IS NULL AND s.identity = %(identity)s
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session) ORDER BY r.id LIMIT %(limit)s)
ORDER BY 1 LIMIT %(limit)s;

-- name: latest_change
-- Where the feed stands.
SELECT greatest((SELECT max(id) FROM version WHERE tenant = %(tenant)s),
                (SELECT max(id) FROM outcome WHERE tenant = %(tenant)s),
                (SELECT max(id) FROM attestation WHERE tenant = %(tenant)s AND id IS NOT NULL),
                (SELECT max(id) FROM revision WHERE tenant = %(tenant)s AND id IS NOT NULL));
