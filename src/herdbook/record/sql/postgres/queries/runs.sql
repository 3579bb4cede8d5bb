-- name: runs_after
-- A page of sessions in the order of their names: a run that starts meanwhile may appear, one that was there is never missed.
SELECT id, agent, identity, channel, box, entity, task, started_at, ended_at FROM session
WHERE tenant = %(tenant)s AND id > %(after)s AND started_at <= %(until)s
  AND (%(under)s::text = '' OR entity = %(under)s OR substr(entity, 1, length(%(under)s::text) + 1) = %(under)s::text || '/')
ORDER BY id LIMIT %(limit)s;

-- name: outcomes_of_runs
-- What happened in each of some sessions, up to a row id: later ones belong to a later snapshot.
SELECT o.session, o.id, o.ref, o.session, o.type, o.identity, o.box, o.task_input, o.observed, o.artifacts, o.verified_by, o.at, o.seal,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type)
FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN outcome o ON o.tenant = %(tenant)s AND o.session = j.value
WHERE o.id <= %(snapshot)s ORDER BY o.session, o.id;

-- name: attested_of_runs
-- Which outcomes of some sessions somebody outside the box vouched for, and with which result last.
SELECT o.id, a.result FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value)
JOIN outcome o ON o.tenant = %(tenant)s AND o.session = j.value
JOIN attestation a ON a.tenant = o.tenant AND a.outcome = o.id ORDER BY o.id, a.n;

-- name: actions_of_runs
-- Tool calls of some sessions, in order.
SELECT a.session, a.n, a.tool, a.args, a.result, a.ok, a.at
FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN action a ON a.tenant = %(tenant)s AND a.session = j.value ORDER BY a.session, a.n;

-- name: contexts_of_runs
-- What the agents of some sessions were given, in order.
SELECT c.session, c.n, c.name, c.text, c.at
FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN context c ON c.tenant = %(tenant)s AND c.session = j.value ORDER BY c.session, c.n;

-- name: reads_of_runs
-- The versions that some sessions were served, each once, in the order they were first shown.
SELECT r.session, r.version, min(r.at)
FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN read r ON r.tenant = %(tenant)s AND r.session = j.value
WHERE r.served = 1 GROUP BY r.session, r.version ORDER BY r.session, min(r.folded), min(r.id);
