-- name: insert_artefact
-- Once an id; what it was made from is never changed.
INSERT INTO artefact (tenant, id, kind, name, hash, parents, lineage, card, identity, at, seal)
VALUES (%(tenant)s, %(artefact)s, %(kind)s, %(name)s, %(hash)s, %(parents)s, %(lineage)s, %(card)s, %(identity)s, %(at)s, %(seal)s);

-- name: artefact
-- One, with what its seal covers.
SELECT id, kind, name, hash, parents, lineage, card, identity, at, seal FROM artefact WHERE tenant = %(tenant)s AND id = %(artefact)s;

-- name: artefacts
-- All of a kind and a name, or of any, the newest first; a page of them.
SELECT id, kind, name, hash, parents, lineage, card, identity, at, seal FROM artefact
WHERE tenant = %(tenant)s AND (%(kind)s::text IS NULL OR kind = %(kind)s) AND (%(name)s::text IS NULL OR name = %(name)s)
ORDER BY at DESC, id LIMIT %(limit)s;

-- name: artefact_parents
-- Who was made from whom: few rows, walked in the process.
SELECT id, kind, name, parents FROM artefact WHERE tenant = %(tenant)s ORDER BY at, id;

-- name: insert_artefact_state
-- Appended; the newest counts.
INSERT INTO artefact_state (tenant, artefact, n, status, metrics, why, identity, at, seal)
VALUES (%(tenant)s, %(artefact)s, %(n)s, %(status)s, %(metrics)s, %(why)s, %(identity)s, %(at)s, %(seal)s);

-- name: artefact_states
-- Everything that became of some artefacts (ids as a JSON list), oldest first.
SELECT s.artefact, s.n, s.status, s.metrics, s.why, s.identity, s.at, s.seal FROM jsonb_array_elements_text(%(artefacts)s::jsonb) j (value)
JOIN artefact_state s ON s.tenant = %(tenant)s AND s.artefact = j.value ORDER BY s.artefact, s.n;

-- name: insert_artefact_run
-- Told twice, it is kept once.
INSERT INTO artefact_run (tenant, session, artefact) SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[]) ON CONFLICT DO NOTHING;

-- name: artefacts_of_runs
-- Which datasets have rows from some runs (names as a JSON list), and from how many of them.
SELECT r.artefact, count(*) FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value)
JOIN artefact_run r ON r.tenant = %(tenant)s AND r.session = j.value GROUP BY r.artefact ORDER BY r.artefact;
