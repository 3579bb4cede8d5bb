-- name: changes
-- What was written and how runs ended, after a place, in the order of commits.
SELECT v.id, 'version', p.path, v.key, v.number, v.kind, v.author, v.identity, v.session, v.box, v.at
FROM version v CROSS JOIN path p ON p.tenant = v.tenant AND p.id = v.path WHERE v.tenant = :tenant AND v.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_version e WHERE e.tenant = v.tenant AND e.version = v.id)
UNION ALL
SELECT o.id, 'outcome', s.entity, o.ref, NULL, o.type, s.agent, o.identity, o.session, o.box, o.at
FROM outcome o CROSS JOIN session s ON s.tenant = o.tenant AND s.id = o.session WHERE o.tenant = :tenant AND o.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = o.tenant AND e.session = o.session)
ORDER BY 1 LIMIT :limit;

-- name: latest_change
-- Where the feed stands.
SELECT max(coalesce((SELECT max(id) FROM version WHERE tenant = :tenant), 0),
           coalesce((SELECT max(id) FROM outcome WHERE tenant = :tenant), 0));
