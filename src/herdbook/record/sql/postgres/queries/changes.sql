-- name: changes
-- What was written and how runs ended, after a place, in the order of commits.
(SELECT v.id, 'version', p.path, v.key, v.number, v.kind, v.author, v.identity, v.session, v.box, v.at
 FROM version v JOIN path p ON p.tenant = v.tenant AND p.id = v.path
 WHERE v.tenant = %(tenant)s AND v.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_version e WHERE e.tenant = v.tenant AND e.version = v.id) ORDER BY v.id LIMIT %(limit)s)
UNION ALL
(SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
 FROM outcome o JOIN session s ON s.tenant = o.tenant AND s.id = o.session
 WHERE o.tenant = %(tenant)s AND o.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = o.tenant AND e.session = o.session) ORDER BY o.id LIMIT %(limit)s)
ORDER BY 1 LIMIT %(limit)s;

-- name: latest_change
-- Where the feed stands.
SELECT greatest((SELECT max(id) FROM version WHERE tenant = %(tenant)s), (SELECT max(id) FROM outcome WHERE tenant = %(tenant)s));
