-- name: insert_serving
-- Noted as the reads are, and nothing more to be done with it; one noted twice is one.
INSERT INTO serving (tenant, session, id, asked, how, arm, policy, candidates, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING;

-- name: last_outcomes
-- The last outcome of each session in the order they arrived, after a given one: what a run came to. Under a path, only sessions that
-- asked about it or what is below it.
SELECT o.id, o.ref, o.session, o.at, o.observed, o.task_input,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type),
       (EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id))::int,
       s.agent, s.identity, s.box, s.entity, s.task, s.started_at, s.ended_at
FROM outcome o JOIN session s ON s.tenant = o.tenant AND s.id = o.session
WHERE o.tenant = %(tenant)s AND o.id > %(after)s
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = o.tenant AND e.session = o.session)
  AND NOT EXISTS (SELECT 1 FROM outcome p WHERE p.tenant = o.tenant AND p.session = o.session AND p.id > o.id)
  AND (%(under)s::text = '' OR EXISTS (SELECT 1 FROM serving g WHERE g.tenant = o.tenant AND g.session = o.session
                              AND (g.asked = %(under)s OR (g.asked > %(low)s AND g.asked < %(high)s))))
ORDER BY o.id LIMIT %(limit)s;

-- name: servings_of
-- The briefings and searches of some sessions (names as a JSON list), in order.
SELECT g.session, g.id, g.asked, g.how, g.arm, g.policy, g.candidates, g.at
FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN serving g ON g.tenant = %(tenant)s AND g.session = j.value ORDER BY g.session, g.id;

-- name: exposures_of
-- What some sessions (names as a JSON list) were shown or had withheld, in order.
SELECT r.session, r.serving, r.version, v.entry, p.path, v.key, v.number, v.claim, r.rank, r.how, r.served, r.probability, r.features, r.at
FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value)
JOIN read r ON r.tenant = %(tenant)s AND r.session = j.value
JOIN version v ON v.id = r.version AND v.tenant = %(tenant)s
JOIN path p ON p.tenant = %(tenant)s AND p.id = v.path
ORDER BY r.session, r.folded, r.id;

-- name: credited_of
-- Which versions the outcomes of some sessions (names as a JSON list) rest on, how and with how much credit.
SELECT o.session, x.version, x.how, x.credit, x.result FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value)
JOIN outcome o ON o.tenant = %(tenant)s AND o.session = j.value
JOIN outcome_cause x ON x.tenant = %(tenant)s AND x.outcome = o.id ORDER BY o.id, x.version, x.how;

-- name: tries_of
-- The tries of some sessions (names as a JSON list), in order.
SELECT a.session, a.n, a.result, a.used, a.at FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value)
JOIN attempt a ON a.tenant = %(tenant)s AND a.session = j.value ORDER BY a.session, a.n;

-- name: tuning_of
-- What is set at some paths (a JSON list; the empty path is the tenant itself): the newest row of each name.
SELECT t.path, t.name, t.value, t.n, t.why, t.identity, t.at FROM jsonb_array_elements_text(%(paths)s::jsonb) j (value)
JOIN tuning t ON t.tenant = %(tenant)s AND t.path = j.value
WHERE t.n = (SELECT max(u.n) FROM tuning u WHERE u.tenant = t.tenant AND u.path = t.path AND u.name = t.name);

-- name: tuning_history
-- Everything that was ever set at one path, oldest first.
SELECT t.path, t.name, t.value, t.n, t.why, t.identity, t.at FROM tuning t
WHERE t.tenant = %(tenant)s AND t.path = %(path)s ORDER BY t.at, t.name, t.n;

-- name: next_tuning
-- Numbers within a name, under the write lock.
SELECT 1 + coalesce(max(n), 0) FROM tuning WHERE tenant = %(tenant)s AND path = %(path)s AND name = %(name)s;

-- name: insert_tuning
-- Appended; the newest counts.
INSERT INTO tuning (tenant, path, name, n, value, why, identity, at)
VALUES (%(tenant)s, %(path)s, %(name)s, %(n)s, %(value)s, %(why)s, %(identity)s, %(at)s);

-- name: set_multiplier
-- The trigger that moves trust looks here.
INSERT INTO multiplier (tenant, path, type, factor) VALUES (%(tenant)s, %(path)s, %(type)s, %(factor)s)
ON CONFLICT (tenant, path, type) DO UPDATE SET factor = excluded.factor;

-- name: drop_multiplier
-- Back to the nearest path above that has one.
DELETE FROM multiplier WHERE tenant = %(tenant)s AND path = %(path)s AND type = %(type)s;

-- name: insert_ranker
-- Once an id; an artefact is never changed.
INSERT INTO ranker (tenant, id, artefact, identity, at, seal)
VALUES (%(tenant)s, %(ranker)s, %(artefact)s, %(identity)s, %(at)s, %(seal)s);

-- name: ranker
-- One artefact, with what its seal covers.
SELECT id, artefact, identity, at, seal FROM ranker WHERE tenant = %(tenant)s AND id = %(ranker)s;

-- name: rankers
-- Every artefact, the newest first.
SELECT id, artefact, identity, at, seal FROM ranker WHERE tenant = %(tenant)s ORDER BY at DESC, id;

-- name: rankers_in_force
-- Which ranker each path names.
SELECT t.path, t.value FROM tuning t WHERE t.tenant = %(tenant)s AND t.name = 'ranker' AND t.value IS NOT NULL
  AND t.n = (SELECT max(u.n) FROM tuning u WHERE u.tenant = t.tenant AND u.path = t.path AND u.name = t.name);
