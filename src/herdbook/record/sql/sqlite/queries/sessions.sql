-- name: session
-- Who runs, where, on what.
SELECT id, agent, identity, channel, box, entity, task, started_at, ended_at, reach FROM session WHERE tenant = :tenant AND id = :session;

-- name: insert_session
-- Once; starting it again finds it.
INSERT INTO session (tenant, id, agent, identity, channel, box, entity, task, started_at, reach)
VALUES (:tenant, :session, :agent, :identity, :channel, :box, :entity, :task, :at, :reach);

-- name: end_session
-- The first ending counts.
UPDATE session SET ended_at = :at WHERE tenant = :tenant AND id = :session AND ended_at IS NULL;

-- name: insert_read
-- Folded in from the journal; a line folded twice is one read.
INSERT INTO read (tenant, session, id, version, rank, how, served, probability, at, serving, features, folded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: reads_of_session
-- What a session was shown since a folding of the journal, in the order it happened: ids alone would lose that when the clock is set back.
SELECT r.id, r.version, r.rank, r.how, r.served, r.probability, r.at, r.folded, v.claim, v.entry, v.number
FROM read r CROSS JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = :tenant AND r.session = :session AND r.folded > :reads ORDER BY r.folded, r.id;

-- name: served_claims
-- What a session was served, as what it asserts, in the order it happened and came into the record.
SELECT v.entry, v.claim, r.version, r.folded FROM read r CROSS JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = :tenant AND r.session = :session AND r.served = 1 ORDER BY r.folded, r.id;

-- name: served_by_key
-- The version of a key that a session was served last, by the key alone: how a plain text in `used` is understood.
SELECT r.version, v.entry FROM read r
CROSS JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = :tenant AND r.session = :session AND r.served = 1 AND v.key = :key ORDER BY r.folded, r.id;

-- name: served_by_entry
-- The version of an entry that a session was served last.
SELECT r.version FROM read r CROSS JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = :tenant AND r.session = :session AND r.served = 1 AND v.entry = :entry ORDER BY r.folded DESC, r.id DESC LIMIT 1;

-- name: causes_of
-- What an outcome needs to know of the versions it names (ids as a JSON list).
SELECT v.id, v.claim, v.entry, v.path, p.path, v.session, v.box, v.identity, v.applies_when,
       v.key, v.number, c.confidence, c.moves
FROM json_each(:versions) j
CROSS JOIN version v ON v.id = j.value AND v.tenant = :tenant
CROSS JOIN path p ON p.tenant = :tenant AND p.id = v.path
CROSS JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim;

-- name: next_action
-- Numbers within a session, under the write lock.
SELECT 1 + coalesce(max(n), 0) FROM action WHERE tenant = :tenant AND session = :session;

-- name: insert_action
-- One tool call.
INSERT INTO action (tenant, session, n, tool, args, result, ok, at)
VALUES (:tenant, :session, :n, :tool, :args, :result, :ok, :at);

-- name: actions_of
-- A session's tool calls after the first so many, in order.
SELECT n, tool, args, result, ok, at FROM action
WHERE tenant = :tenant AND session = :session AND n > :actions ORDER BY n;

-- name: next_context
-- Numbers within a session, under the write lock.
SELECT 1 + coalesce(max(n), 0) FROM context WHERE tenant = :tenant AND session = :session;

-- name: insert_context
-- One thing the agent was given.
INSERT INTO context (tenant, session, n, name, text, at) VALUES (:tenant, :session, :n, :name, :text, :at);

-- name: contexts_of
-- What the agent was given after the first so many, in order.
SELECT n, name, text, at FROM context WHERE tenant = :tenant AND session = :session AND n > :contexts ORDER BY n;

-- name: next_attempt
-- Numbers within a session, under the write lock.
SELECT 1 + coalesce(max(n), 0) FROM attempt WHERE tenant = :tenant AND session = :session;

-- name: insert_attempt
-- One try, with the versions it used.
INSERT INTO attempt (tenant, session, n, result, used, note, at)
VALUES (:tenant, :session, :n, :result, :used, :note, :at);

-- name: attempts_of
-- A session's tries after the first so many, in order.
SELECT n, result, used, note, at FROM attempt WHERE tenant = :tenant AND session = :session AND n > :attempts ORDER BY n;

-- name: uncharged_attempts
-- Tries no outcome has charged yet.
SELECT result, used FROM attempt WHERE tenant = :tenant AND session = :session AND charged = 0 ORDER BY n;

-- name: charge_attempts
-- Each try is charged by one outcome only.
UPDATE attempt SET charged = 1 WHERE tenant = :tenant AND session = :session AND charged = 0;

-- name: writes_of
-- The versions a session wrote after the first so many, in order.
SELECT v.id, v.claim, v.entry, v.number FROM version v INDEXED BY version_of_session
WHERE v.tenant = :tenant AND v.session = :session ORDER BY v.id LIMIT -1 OFFSET :writes;

-- name: insert_box
-- The row comes before the box.
INSERT INTO box (tenant, id, provider, isolation, label, owner, opened_at, lease_until, competes, claim)
VALUES (:tenant, :box, :provider, :isolation, :label, :owner, :at, :lease_until, :competes,
        :claim);

-- name: box
-- One box.
SELECT id, provider, isolation, label, owner, opened_at, lease_until, closed_at, detail, competes, claim FROM box WHERE tenant = :tenant AND id = :box;

-- name: beat_box
-- A closed box has no lease to lengthen.
UPDATE box SET lease_until = :lease_until, claim = coalesce(:claim, claim)
WHERE tenant = :tenant AND id = :box AND closed_at IS NULL;

-- name: close_box
-- The first closing counts.
UPDATE box SET closed_at = :at, detail = :detail WHERE tenant = :tenant AND id = :box AND closed_at IS NULL;

-- name: boxes
-- Newest first.
SELECT id, provider, isolation, label, owner, opened_at, lease_until, closed_at, detail, competes, claim FROM box
WHERE tenant = :tenant AND (:label IS NULL OR label = :label) AND (:live = 0 OR closed_at IS NULL)
ORDER BY opened_at DESC, id DESC LIMIT :limit;

-- name: box_has_won
-- From now on what it writes counts.
UPDATE box SET competes = 0 WHERE tenant = :tenant AND id = :box;

-- name: runs_of_box
-- What was begun in a box, in order.
SELECT id FROM session WHERE tenant = :tenant AND box = :box ORDER BY started_at, id;

-- name: drafts_of_box
-- What a box wrote while it competed, in order, and for whom.
SELECT s.identity, s.channel, s.reach, a.args FROM session s
JOIN action a ON a.tenant = s.tenant AND a.session = s.id AND a.tool = :tool
WHERE s.tenant = :tenant AND s.box = :box ORDER BY s.started_at, s.id, a.n;
