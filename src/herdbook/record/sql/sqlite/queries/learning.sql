-- name: insert_serving
-- Folded in from the journal; a line folded twice is one serving.
INSERT INTO serving (tenant, session, id, asked, how, arm, policy, candidates, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: last_outcomes
-- The last outcome of each session in the order they arrived, after a given one: what a run came to. Under a path, only sessions that
-- asked about it or what is below it.
SELECT o.id, o.ref, o.session, o.at, o.observed, o.task_input,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type),
       EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id),
       s.agent, s.identity, s.box, s.entity, s.task, s.started_at, s.ended_at
FROM outcome o JOIN session s ON s.tenant = o.tenant AND s.id = o.session
WHERE o.tenant = :tenant AND o.id > :after
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = o.tenant AND e.session = o.session)
  AND NOT EXISTS (SELECT 1 FROM outcome p WHERE p.tenant = o.tenant AND p.session = o.session AND p.id > o.id)
  AND (:under = '' OR EXISTS (SELECT 1 FROM serving g WHERE g.tenant = o.tenant AND g.session = o.session
                              AND (g.asked = :under OR (g.asked > :low AND g.asked < :high))))
ORDER BY o.id LIMIT :limit;

-- name: servings_of
-- The briefings and searches of some sessions (names as a JSON list), in order.
SELECT g.session, g.id, g.asked, g.how, g.arm, g.policy, g.candidates, g.at
FROM json_each(:sessions) j CROSS JOIN serving g ON g.tenant = :tenant AND g.session = j.value ORDER BY g.session, g.id;

-- name: exposures_of
-- What some sessions (names as a JSON list) were shown or had withheld, in order.
SELECT r.session, r.serving, r.version, v.entry, p.path, v.key, v.number, v.claim, r.rank, r.how, r.served, r.probability, r.features, r.at
FROM json_each(:sessions) j
CROSS JOIN read r ON r.tenant = :tenant AND r.session = j.value
CROSS JOIN version v ON v.id = r.version AND v.tenant = :tenant
CROSS JOIN path p ON p.tenant = :tenant AND p.id = v.path
ORDER BY r.session, r.folded, r.id;

-- name: credited_of
-- Which versions the outcomes of some sessions (names as a JSON list) rest on, how and with how much credit.
SELECT o.session, x.version, x.how, x.credit, x.result FROM json_each(:sessions) j
CROSS JOIN outcome o ON o.tenant = :tenant AND o.session = j.value
CROSS JOIN outcome_cause x ON x.tenant = :tenant AND x.outcome = o.id ORDER BY o.id, x.version, x.how;

-- name: tries_of
-- The tries of some sessions (names as a JSON list), in order.
SELECT a.session, a.n, a.result, a.used, a.at FROM json_each(:sessions) j
CROSS JOIN attempt a ON a.tenant = :tenant AND a.session = j.value ORDER BY a.session, a.n;

-- name: tuning_of
-- What is set at some paths (a JSON list; the empty path is the tenant itself): the newest row of each name.
SELECT t.path, t.name, t.value, t.n, t.why, t.identity, t.at FROM json_each(:paths) j
CROSS JOIN tuning t ON t.tenant = :tenant AND t.path = j.value
WHERE t.n = (SELECT max(u.n) FROM tuning u WHERE u.tenant = t.tenant AND u.path = t.path AND u.name = t.name);

-- name: tuning_history
-- Everything that was ever set at one path, oldest first.
SELECT t.path, t.name, t.value, t.n, t.why, t.identity, t.at FROM tuning t
WHERE t.tenant = :tenant AND t.path = :path ORDER BY t.at, t.name, t.n;

-- name: next_tuning
-- Numbers within a name, under the write lock.
SELECT 1 + coalesce(max(n), 0) FROM tuning WHERE tenant = :tenant AND path = :path AND name = :name;

-- name: insert_tuning
-- Appended; the newest counts.
INSERT INTO tuning (tenant, path, name, n, value, why, identity, at)
VALUES (:tenant, :path, :name, :n, :value, :why, :identity, :at);

-- name: set_multiplier
-- The trigger that moves trust looks here.
INSERT INTO multiplier (tenant, path, type, factor) VALUES (:tenant, :path, :type, :factor)
ON CONFLICT (tenant, path, type) DO UPDATE SET factor = excluded.factor;

-- name: drop_multiplier
-- Back to the nearest path above that has one.
DELETE FROM multiplier WHERE tenant = :tenant AND path = :path AND type = :type;

-- name: insert_ranker
-- Once an id; an artefact is never changed.
INSERT INTO ranker (tenant, id, artefact, identity, at, seal) VALUES (:tenant, :ranker, :artefact, :identity, :at, :seal);

-- name: ranker
-- One artefact, with what its seal covers.
SELECT id, artefact, identity, at, seal FROM ranker WHERE tenant = :tenant AND id = :ranker;

-- name: rankers
-- Every artefact, the newest first.
SELECT id, artefact, identity, at, seal FROM ranker WHERE tenant = :tenant ORDER BY at DESC, id;

-- name: rankers_in_force
-- Which ranker each path names.
SELECT t.path, t.value FROM tuning t WHERE t.tenant = :tenant AND t.name = 'ranker' AND t.value IS NOT NULL
  AND t.n = (SELECT max(u.n) FROM tuning u WHERE u.tenant = t.tenant AND u.path = t.path AND u.name = t.name);
