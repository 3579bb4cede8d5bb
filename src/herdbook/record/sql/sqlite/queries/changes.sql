-- name: changes
-- What was written, how runs ended and what was said of that, after a place, in the order of commits.
SELECT v.id, 'version', p.path, v.key, v.number, v.kind, v.author, v.identity, v.session, v.box, v.at
 FROM version v CROSS JOIN path p ON p.tenant = v.tenant AND p.id = v.path
 WHERE v.tenant = :tenant AND v.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_version x WHERE x.tenant = v.tenant AND x.version = v.id)
UNION ALL
SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM outcome o CROSS JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE o.tenant = :tenant AND o.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
UNION ALL
SELECT a.id, 'attestation', s.entity, o.ref, NULL, a.result, a.identity, a.identity, o.session, o.box, a.at
 FROM attestation a CROSS JOIN outcome o ON o.tenant = a.tenant AND o.id = a.outcome
 CROSS JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE a.tenant = :tenant AND a.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
UNION ALL
SELECT r.id, 'revision', s.entity, o.ref, NULL, r.type, r.identity, r.identity, o.session, o.box, r.at
 FROM revision r CROSS JOIN outcome o ON o.tenant = r.tenant AND o.id = r.outcome
 CROSS JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE r.tenant = :tenant AND r.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY 1 LIMIT :limit;

-- name: changes_below
-- The same of a path and what is below it, without a look at anything else: what it costs depends on those paths.
SELECT v.id, 'version', p.path, v.key, v.number, v.kind, v.author, v.identity, v.session, v.box, v.at
 FROM path p CROSS JOIN entry e ON e.tenant = p.tenant AND e.path = p.id
 CROSS JOIN version v ON v.tenant = e.tenant AND v.entry = e.id AND v.id > :after
 WHERE p.tenant = :tenant AND (p.path = :path OR (p.path > :low AND p.path < :high))
  AND NOT EXISTS (SELECT 1 FROM erased_version x WHERE x.tenant = v.tenant AND x.version = v.id)
UNION ALL
SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id > :after
 WHERE s.tenant = :tenant AND (s.entity = :path OR (s.entity > :low AND s.entity < :high))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
UNION ALL
SELECT a.id, 'attestation', s.entity, o.ref, NULL, a.result, a.identity, a.identity, o.session, o.box, a.at
 FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 CROSS JOIN attestation a ON a.tenant = o.tenant AND a.outcome = o.id AND a.id > :after
 WHERE s.tenant = :tenant AND (s.entity = :path OR (s.entity > :low AND s.entity < :high))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
UNION ALL
SELECT r.id, 'revision', s.entity, o.ref, NULL, r.type, r.identity, r.identity, o.session, o.box, r.at
 FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 CROSS JOIN revision r ON r.tenant = o.tenant AND r.outcome = o.id AND r.id > :after
 WHERE s.tenant = :tenant AND (s.entity = :path OR (s.entity > :low AND s.entity < :high))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY 1 LIMIT :limit;

-- name: changes_of_own
-- The same of one's own runs that are about no path.
SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id > :after
 WHERE s.tenant = :tenant AND s.entity IS NULL AND s.identity = :identity
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
UNION ALL
SELECT a.id, 'attestation', s.entity, o.ref, NULL, a.result, a.identity, a.identity, o.session, o.box, a.at
 FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 CROSS JOIN attestation a ON a.tenant = o.tenant AND a.outcome = o.id AND a.id > :after
 WHERE s.tenant = :tenant AND s.entity IS NULL AND s.identity = :identity
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
UNION ALL
SELECT r.id, 'revision', s.entity, o.ref, NULL, r.type, r.identity, r.identity, o.session, o.box, r.at
 FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id
 CROSS JOIN revision r ON r.tenant = o.tenant AND r.outcome = o.id AND r.id > :after
 WHERE s.tenant = :tenant AND s.entity IS NULL AND s.identity = :identity
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY 1 LIMIT :limit;

-- name: latest_change
-- Where the feed stands.
SELECT max(coalesce((SELECT max(id) FROM version WHERE tenant = :tenant), 0),
           coalesce((SELECT max(id) FROM outcome WHERE tenant = :tenant), 0),
           coalesce((SELECT max(id) FROM attestation WHERE tenant = :tenant AND id IS NOT NULL), 0),
           coalesce((SELECT max(id) FROM revision WHERE tenant = :tenant AND id IS NOT NULL), 0));
