-- Claims whose entry is not there, or that do not stand where their log of moves and refolds ends, for the tenant of the transaction. Of a large
-- record the first claims only: rows restored without their triggers are wrong everywhere.
SELECT c.entry, e.id IS NOT NULL FROM (SELECT * FROM claim ORDER BY tenant, path, entry, digest LIMIT 20000) c
LEFT JOIN entry e ON e.tenant = c.tenant AND e.path = c.path AND e.id = c.entry
LEFT JOIN LATERAL (SELECT count(*) AS n, max(x.n) AS last FROM outcome_cause x
  WHERE x.tenant = c.tenant AND x.entry = c.entry AND x.claim = c.digest AND x.n IS NOT NULL) m ON true
LEFT JOIN outcome_cause l ON l.tenant = c.tenant AND l.entry = c.entry AND l.claim = c.digest AND l.n = c.moves
LEFT JOIN LATERAL (SELECT f.after FROM refold f JOIN revision r ON r.tenant = f.tenant AND r.outcome = f.outcome AND r.n = f.n
  WHERE f.tenant = c.tenant AND f.entry = c.entry AND f.claim = c.digest AND f.moves = c.moves ORDER BY r.arrived DESC LIMIT 1) f ON true
WHERE e.id IS NULL OR m.n <> c.moves OR coalesce(m.last, 0) <> c.moves OR c.confidence <> coalesce(f.after, l.after, c.initial)
LIMIT 20;
