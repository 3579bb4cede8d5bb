-- name: session
-- Who runs, where, on what.
SELECT id, agent, identity, channel, box, entity, task, started_at, ended_at, reach FROM session WHERE tenant = %(tenant)s AND id = %(session)s;

-- name: insert_session
-- Once; starting it again finds it.
INSERT INTO session (tenant, id, agent, identity, channel, box, entity, task, started_at, reach)
VALUES (%(tenant)s, %(session)s, %(agent)s, %(identity)s, %(channel)s, %(box)s, %(entity)s, %(task)s, %(at)s, %(reach)s);

-- name: end_session
-- The first ending counts.
UPDATE session SET ended_at = %(at)s WHERE tenant = %(tenant)s AND id = %(session)s AND ended_at IS NULL;

-- name: note_reads
-- In arrays, so that a briefing's forty reads are one statement; a read noted twice is one.
INSERT INTO noted (tenant, session, id, version, rank, how, served, probability, at, serving, features)
SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::smallint[], %s::float8[],
                     %s::bigint[], %s::bigint[], %s::text[]) ON CONFLICT DO NOTHING;

-- name: fold_reads
-- What was noted comes into the record with the write that holds the tenant's turn, numbered in the order in which it arrived; what was
-- served of it is counted where it is claimed.
WITH moved AS (DELETE FROM noted WHERE tenant = %(tenant)s RETURNING *), folded_now AS (
  INSERT INTO read (tenant, session, id, version, rank, how, served, probability, at, serving, features, folded)
  SELECT tenant, session, id, version, rank, how, served, probability, at, serving, features, %(folded)s + row_number() OVER (ORDER BY arrived)
  FROM moved ORDER BY arrived ON CONFLICT DO NOTHING RETURNING folded, version, served
), recalled AS (
  UPDATE claim c SET recalls = c.recalls + r.times
  FROM (SELECT v.path, v.entry, v.claim, count(*) AS times FROM folded_now k
        JOIN version v ON v.tenant = %(tenant)s AND v.id = k.version WHERE k.served = 1 GROUP BY v.path, v.entry, v.claim OFFSET 0) r
  WHERE c.tenant = %(tenant)s AND c.path = r.path AND c.entry = r.entry AND c.digest = r.claim)
UPDATE tenant SET folded = (SELECT max(folded) FROM folded_now) WHERE id = %(tenant)s AND EXISTS (SELECT 1 FROM folded_now);

-- name: reads_of_session
-- What a session was shown since a folding of the journal, in the order it happened: ids alone would lose that when the clock is set back.
SELECT r.id, r.version, r.rank, r.how, r.served, r.probability, r.at, r.folded, v.claim, v.entry, v.number
FROM read r JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = %(tenant)s AND r.session = %(session)s AND r.folded > %(reads)s ORDER BY r.folded, r.id;

-- name: served_claims
-- What a session was served, as what it asserts, in the order it happened and came into the record.
SELECT v.entry, v.claim, r.version, r.folded FROM read r JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = %(tenant)s AND r.session = %(session)s AND r.served = 1 ORDER BY r.folded, r.id;

-- name: served_by_key
-- The version of a key that a session was served last, by the key alone: how a plain text in `used` is understood.
SELECT r.version, v.entry FROM read r
JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = %(tenant)s AND r.session = %(session)s AND r.served = 1 AND v.key = %(key)s ORDER BY r.folded, r.id;

-- name: served_by_entry
-- The version of an entry that a session was served last.
SELECT r.version FROM read r JOIN version v ON v.id = r.version AND v.tenant = r.tenant
WHERE r.tenant = %(tenant)s AND r.session = %(session)s AND r.served = 1 AND v.entry = %(entry)s ORDER BY r.folded DESC, r.id DESC LIMIT 1;

-- name: causes_of
-- What an outcome needs to know of the versions it names (ids as a JSON list).
SELECT v.id, v.claim, v.entry, v.path, p.path, v.session, v.box, v.identity, v.applies_when,
       v.key, v.number, c.confidence, c.moves
FROM (SELECT a::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb) a OFFSET 0) j (value)
JOIN version v ON v.id = j.value AND v.tenant = %(tenant)s
JOIN path p ON p.tenant = %(tenant)s AND p.id = v.path
JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim;

-- name: next_action
-- Numbers within a session, under the write lock.
SELECT 1 + coalesce((SELECT n FROM action WHERE tenant = %(tenant)s AND session = %(session)s ORDER BY n DESC LIMIT 1), 0);

-- name: insert_action
-- One tool call.
INSERT INTO action (tenant, session, n, tool, args, result, ok, at)
VALUES (%(tenant)s, %(session)s, %(n)s, %(tool)s, %(args)s, %(result)s, %(ok)s, %(at)s);

-- name: actions_of
-- A session's tool calls after the first so many, in order.
SELECT n, tool, args, result, ok, at FROM action
WHERE tenant = %(tenant)s AND session = %(session)s AND n > %(actions)s ORDER BY n;

-- name: next_context
-- Numbers within a session, under the write lock.
SELECT 1 + coalesce((SELECT n FROM context WHERE tenant = %(tenant)s AND session = %(session)s ORDER BY n DESC LIMIT 1), 0);

-- name: insert_context
-- One thing the agent was given.
INSERT INTO context (tenant, session, n, name, text, at) VALUES (%(tenant)s, %(session)s, %(n)s, %(name)s, %(text)s, %(at)s);

-- name: contexts_of
-- What the agent was given after the first so many, in order.
SELECT n, name, text, at FROM context WHERE tenant = %(tenant)s AND session = %(session)s AND n > %(contexts)s ORDER BY n;

-- name: next_attempt
-- Numbers within a session, under the write lock.
SELECT 1 + coalesce((SELECT n FROM attempt WHERE tenant = %(tenant)s AND session = %(session)s ORDER BY n DESC LIMIT 1), 0);

-- name: insert_attempt
-- One try, with the versions it used.
INSERT INTO attempt (tenant, session, n, result, used, note, at)
VALUES (%(tenant)s, %(session)s, %(n)s, %(result)s, %(used)s, %(note)s, %(at)s);

-- name: attempts_of
-- A session's tries after the first so many, in order.
SELECT n, result, used, note, at FROM attempt WHERE tenant = %(tenant)s AND session = %(session)s AND n > %(attempts)s ORDER BY n;

-- name: uncharged_attempts
-- Tries no outcome has charged yet.
SELECT result, used FROM attempt WHERE tenant = %(tenant)s AND session = %(session)s AND charged = 0 ORDER BY n;

-- name: charge_attempts
-- Each try is charged by one outcome only.
UPDATE attempt SET charged = 1 WHERE tenant = %(tenant)s AND session = %(session)s AND charged = 0;

-- name: writes_of
-- The versions a session wrote after the first so many, in order.
SELECT v.id, v.claim, v.entry, v.number FROM version v
WHERE v.tenant = %(tenant)s AND v.session = %(session)s ORDER BY v.id OFFSET %(writes)s;

-- name: insert_box
-- The row comes before the box.
INSERT INTO box (tenant, id, provider, isolation, label, owner, opened_at, lease_until, competes, claim)
VALUES (%(tenant)s, %(box)s, %(provider)s, %(isolation)s, %(label)s, %(owner)s, %(at)s, %(lease_until)s, %(competes)s,
        %(claim)s);

-- name: box
-- One box.
SELECT id, provider, isolation, label, owner, opened_at, lease_until, closed_at, detail, competes, claim FROM box WHERE tenant = %(tenant)s AND id = %(box)s;

-- name: beat_box
-- A closed box has no lease to lengthen.
UPDATE box SET lease_until = %(lease_until)s, claim = coalesce(%(claim)s::text, claim)
WHERE tenant = %(tenant)s AND id = %(box)s AND closed_at IS NULL;

-- name: close_box
-- The first closing counts.
UPDATE box SET closed_at = %(at)s, detail = %(detail)s WHERE tenant = %(tenant)s AND id = %(box)s AND closed_at IS NULL;

-- name: boxes
-- Newest first.
SELECT id, provider, isolation, label, owner, opened_at, lease_until, closed_at, detail, competes, claim FROM box
WHERE tenant = %(tenant)s AND (%(label)s::text IS NULL OR label = %(label)s) AND (%(live)s = 0 OR closed_at IS NULL)
ORDER BY opened_at DESC, id DESC LIMIT %(limit)s;

-- name: box_has_won
-- From now on what it writes counts.
UPDATE box SET competes = 0 WHERE tenant = %(tenant)s AND id = %(box)s;

-- name: runs_of_box
-- What was begun in a box, in order.
SELECT id FROM session WHERE tenant = %(tenant)s AND box = %(box)s ORDER BY started_at, id;

-- name: drafts_of_box
-- What a box wrote while it competed, in order, and for whom.
SELECT s.identity, s.channel, s.reach, a.args FROM session s
JOIN action a ON a.tenant = s.tenant AND a.session = s.id AND a.tool = %(tool)s
WHERE s.tenant = %(tenant)s AND s.box = %(box)s ORDER BY s.started_at, s.id, a.n;
