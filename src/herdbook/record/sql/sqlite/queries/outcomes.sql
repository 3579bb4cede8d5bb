-- name: outcome
-- One outcome by its ref, with what it counts as now.
SELECT o.id, o.ref, o.session, o.type, o.identity, o.box, o.task_input, o.observed, o.artifacts, o.verified_by, o.at, o.seal,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type)
FROM outcome o WHERE o.tenant = :tenant AND o.ref = :ref;

-- name: outcomes_of_session
-- A session's outcomes in the order they arrived.
SELECT o.id, o.ref, o.session, o.type, o.identity, o.box, o.task_input, o.observed, o.artifacts, o.verified_by, o.at, o.seal,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type)
FROM outcome o WHERE o.tenant = :tenant AND o.session = :session ORDER BY o.id;

-- name: insert_outcome
-- Once a ref; the caller has looked.
INSERT INTO outcome (tenant, id, ref, session, type, identity, box, task_input, observed, artifacts, verified_by, at, seal)
VALUES (:tenant, :outcome, :ref, :session, :type, :identity, :box, :task_input, :observed, :artifacts, :verified_by, :at, :seal);

-- name: insert_cause
-- A move told whole: the trigger moves the claim by it, and refuses what is not the claim's next move.
INSERT INTO outcome_cause (tenant, outcome, version, how, factor, credit, result, effective_factor, entry, claim, n, before, after)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: moves_of_outcome
-- What one outcome moved, as it happened.
SELECT p.path, v.key, v.number, x.before, x.factor, x.after, x.how, x.credit, x.entry, x.claim, x.version, x.result, x.n
FROM outcome_cause x
CROSS JOIN version v ON v.id = x.version
CROSS JOIN path p ON p.tenant = x.tenant AND p.id = v.path
WHERE x.tenant = :tenant AND x.outcome = :outcome ORDER BY p.path, v.key, v.number, x.n;

-- name: multipliers
-- What a type of outcome does, everywhere and under which paths.
SELECT path, factor FROM multiplier WHERE tenant = :tenant AND type = :type;

-- name: count_once
-- An unattested outcome counts in evidence once per identity, entry and day.
INSERT INTO counted (tenant, entry, identity, day) VALUES (?, ?, ?, ?);

-- name: counted_already
-- Which of some entries (ids as a JSON list) have counted today for this identity.
SELECT c.entry FROM json_each(:entries) j
CROSS JOIN counted c ON c.tenant = :tenant AND c.entry = j.value AND c.identity = :identity AND c.day = :day;

-- name: add_base_rate
-- The entity's own success rate, which evidence is measured against.
UPDATE path SET outcomes = outcomes + :outcomes, successes = successes + :successes WHERE tenant = :tenant AND id = :path;

-- name: insert_attestation
-- Appended; the first one that says success gives standing.
INSERT INTO attestation (tenant, id, outcome, n, identity, channel, exit_code, result, note, at, seal)
VALUES (:tenant, :id, :outcome, :n, :identity, :channel, :exit_code, :result, :note, :at, :seal);

-- name: attestations_of
-- Who vouched for an outcome.
SELECT n, identity, channel, exit_code, result, note, at, seal, id FROM attestation WHERE tenant = :tenant AND outcome = :outcome ORDER BY n;

-- name: credit_cause
-- An attested outcome counts in evidence in full.
UPDATE outcome_cause SET credit = :credit WHERE tenant = :tenant AND outcome = :outcome AND version = :version AND how = :how;

-- name: credit_claim
-- The difference that attesting makes to a claim's evidence: sums are added to; what failed lately follows the order of arrival, so
-- a move that is not the last one asks for the fold.
UPDATE claim SET held = held + :held, failed = failed + :failed, failed_since = CASE
  WHEN moves > :n THEN (WITH RECURSIVE f(n, x) AS (
      SELECT 0, 0.0 UNION ALL
      SELECT f.n + 1, CASE c.result WHEN 1 THEN f.x * (1 - c.credit) ELSE f.x + c.credit END FROM f
      JOIN outcome_cause c ON c.tenant = claim.tenant AND c.entry = claim.entry AND c.claim = claim.digest AND c.n = f.n + 1)
    SELECT x FROM f ORDER BY n DESC LIMIT 1)
  WHEN :held > 0 THEN failed_since * (1 - :held) ELSE failed_since + :failed END
WHERE (tenant, path, entry, digest) = (SELECT tenant, path, entry, claim FROM version WHERE id = :version AND tenant = :tenant);

-- name: stand
-- What an attested success gives, or its revision takes away.
UPDATE claim SET observed = max(0, observed + :observed), corroborated = max(0, corroborated + :corroborated)
WHERE (tenant, path, entry, digest) = (SELECT tenant, path, entry, claim FROM version WHERE id = :version AND tenant = :tenant);

-- name: mark_standing
-- Remember the newest version whose claim stands, to be served beside an unproven newer one: the newest that states the claim of the
-- one that earned it.
UPDATE entry SET standing_version = max(coalesce(standing_version, 0), (
  SELECT max(v.id) FROM version w JOIN version v ON v.tenant = w.tenant AND v.entry = w.entry AND v.claim = w.claim
  WHERE w.id = :version AND (v.id = w.id OR v.origin IN ('principal', 'operator'))))
WHERE (tenant, path, key) = (SELECT tenant, path, key FROM version WHERE id = :version AND tenant = :tenant);

-- name: clear_standing
-- A claim that no longer stands is not served as one that does: back to what stood before, never on to what has yet to earn it.
UPDATE entry SET standing_version = (
  SELECT max(v.id) FROM version v JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim
  WHERE v.tenant = entry.tenant AND v.entry = entry.id AND (c.observed > 0 OR c.corroborated > 0)
    AND (v.id <= entry.standing_version OR v.origin IN ('principal', 'operator')))
WHERE (tenant, path, key) = (SELECT tenant, path, key FROM version WHERE id = :version AND tenant = :tenant);

-- name: next_revision
-- Numbers within an outcome, under the write lock.
SELECT 1 + coalesce(max(n), 0) FROM revision WHERE tenant = :tenant AND outcome = :outcome;

-- name: insert_revision
-- The trigger folds every claim it touches again.
INSERT INTO revision (tenant, id, outcome, n, type, why, identity, at, seal)
VALUES (:tenant, :id, :outcome, :n, :type, :why, :identity, :at, :seal);

-- name: revisions_of
-- What an outcome was said to have been, in order.
SELECT n, type, why, identity, at, seal, id FROM revision WHERE tenant = :tenant AND outcome = :outcome ORDER BY n;

-- name: refolds_of
-- What one revision moved.
SELECT f.entry, f.claim, f.before, f.after FROM outcome_cause x
JOIN refold f ON f.tenant = x.tenant AND f.entry = x.entry AND f.claim = x.claim AND f.outcome = x.outcome AND f.n = :n
WHERE x.tenant = :tenant AND x.outcome = :outcome GROUP BY f.entry, f.claim ORDER BY f.entry, f.claim;

-- name: claims_of_entry
-- Every claim an entry ever made.
SELECT c.digest, c.initial, c.confidence, c.moves, c.recalls, c.observed, c.corroborated, c.held, c.failed, c.failed_since
FROM claim c WHERE c.tenant = :tenant AND c.path = :path AND c.entry = :entry;

-- name: moves_of_claim
-- Every move of a claim with its outcome and the run it came from.
SELECT x.n, o.at, o.ref, o.type, x.how, x.before, x.factor, x.after, v.number, s.agent, s.box, s.id, o.identity, x.credit, x.result,
       EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id AND a.result = 'success'),
       (SELECT min(r.at) FROM read r WHERE r.tenant = x.tenant AND r.session = o.session AND r.version = x.version AND r.served = 1),
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type)
FROM outcome_cause x
CROSS JOIN outcome o ON o.id = x.outcome
JOIN session s ON s.tenant = o.tenant AND s.id = o.session
CROSS JOIN version v ON v.id = x.version
WHERE x.tenant = :tenant AND x.entry = :entry AND x.claim = :claim AND x.n IS NOT NULL ORDER BY x.n;

-- name: refolds_of_claim
-- The moves that revisions made.
SELECT r.at, o.ref, r.type, f.before, f.after, r.why, r.identity, r.n, f.moves FROM refold f
JOIN revision r ON r.tenant = f.tenant AND r.outcome = f.outcome AND r.n = f.n
JOIN outcome o ON o.id = f.outcome
WHERE f.tenant = :tenant AND f.entry = :entry AND f.claim = :claim ORDER BY r.rowid;

-- name: last_trace
-- The link to chain to.
SELECT n, seal, event FROM trace WHERE tenant = :tenant AND session = :session ORDER BY n DESC LIMIT 1;

-- name: insert_trace
-- A link of the session's sealed chain.
INSERT INTO trace (tenant, session, n, event, digest, seal, at) VALUES (:tenant, :session, :n, :event, :digest, :seal, :at);

-- name: traces_of
-- The chain, to be checked on read.
SELECT n, event, digest, seal, at FROM trace WHERE tenant = :tenant AND session = :session ORDER BY n;

-- name: numbers_of
-- The numbers of given versions (ids as a JSON list).
SELECT v.id, v.number FROM json_each(:versions) j CROSS JOIN version v ON v.id = j.value AND v.tenant = :tenant;

-- name: newest_outcomes
-- How runs ended, before a place, the newest first.
SELECT o.id, o.ref, o.session, s.entity, coalesce(s.task, o.task_input), o.type,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type),
       s.agent, o.identity, o.box, EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id), o.at
FROM outcome o CROSS JOIN session s ON s.tenant = o.tenant AND s.id = o.session
WHERE o.tenant = :tenant AND o.id < :before
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY o.id DESC LIMIT :limit;

-- name: newest_outcomes_below
-- The same of runs about a path and what is below it: what it costs depends on those.
SELECT o.id, o.ref, o.session, s.entity, coalesce(s.task, o.task_input), o.type,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type),
       s.agent, o.identity, o.box, EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id), o.at
FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id < :before
WHERE s.tenant = :tenant AND (s.entity = :path OR (s.entity > :low AND s.entity < :high))
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY o.id DESC LIMIT :limit;

-- name: newest_outcomes_of_own
-- The same of one's own runs that are about no path.
SELECT o.id, o.ref, o.session, s.entity, coalesce(s.task, o.task_input), o.type,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type),
       s.agent, o.identity, o.box, EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id), o.at
FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id < :before
WHERE s.tenant = :tenant AND s.entity IS NULL AND s.identity = :identity
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY o.id DESC LIMIT :limit;

-- name: newest_outcomes_of_box
-- The same of the runs in a box.
SELECT o.id, o.ref, o.session, s.entity, coalesce(s.task, o.task_input), o.type,
       coalesce((SELECT r.type FROM revision r WHERE r.tenant = o.tenant AND r.outcome = o.id ORDER BY r.n DESC LIMIT 1), o.type),
       s.agent, o.identity, o.box, EXISTS (SELECT 1 FROM attestation a WHERE a.tenant = o.tenant AND a.outcome = o.id), o.at
FROM session s CROSS JOIN outcome o ON o.tenant = s.tenant AND o.session = s.id AND o.id < :before
WHERE s.tenant = :tenant AND s.box = :box
  AND NOT EXISTS (SELECT 1 FROM erased_session x WHERE x.tenant = o.tenant AND x.session = o.session)
ORDER BY o.id DESC LIMIT :limit;
