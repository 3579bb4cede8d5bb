-- name: erasure_count
-- Whether anything was erased since a process last looked: then what it has cached is looked at again.
SELECT count(*) FROM erasure WHERE tenant = :tenant;

-- name: erasure
-- One, with what its seal covers.
SELECT id, kind, subject, why, identity, at, sessions, versions, seal FROM erasure WHERE tenant = :tenant AND id = :erasure;

-- name: erasures
-- All, or those of one subject, the newest first.
SELECT id, kind, subject, why, identity, at, sessions, versions, seal FROM erasure
WHERE tenant = :tenant AND (:subject IS NULL OR subject = :subject) ORDER BY at DESC, id LIMIT :limit;

-- name: insert_erasure
-- Once an id.
INSERT INTO erasure (tenant, id, kind, subject, why, identity, at, sessions, versions, seal)
VALUES (:tenant, :erasure, :kind, :subject, :why, :identity, :at, :sessions, :versions, :seal);

-- name: insert_erased_session
-- The first erasure of a run counts.
INSERT INTO erased_session (tenant, session, erasure) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: insert_erased_version
-- The first erasure of a version counts.
INSERT INTO erased_version (tenant, version, erasure) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: erased_sessions
-- Which of some runs (names as a JSON list) are erased.
SELECT e.session FROM json_each(:sessions) j CROSS JOIN erased_session e ON e.tenant = :tenant AND e.session = j.value;

-- name: erased_versions
-- Which of some versions (ids as a JSON list) are erased.
SELECT e.version FROM json_each(:versions) j CROSS JOIN erased_version e ON e.tenant = :tenant AND e.version = j.value;

-- name: sessions_by_session
-- The run of a name.
SELECT id FROM session WHERE tenant = :tenant AND id = :subject;

-- name: sessions_by_author
-- The runs of an agent. Walks all runs, like those below: erasing is rare.
SELECT id FROM session WHERE tenant = :tenant AND agent = :subject ORDER BY id;

-- name: sessions_by_identity
-- The runs begun with a credential of an owner.
SELECT id FROM session WHERE tenant = :tenant AND identity = :subject ORDER BY id;

-- name: sessions_by_entity
-- The runs about a path and what is below it.
SELECT id FROM session WHERE tenant = :tenant AND (entity = :subject OR substr(entity, 1, length(:subject) + 1) = :subject || '/')
ORDER BY id;

-- name: sessions_by_text
-- The runs in which a text stands anywhere, in small letters or capitals; inside of JSON as it is quoted there.
SELECT id FROM session WHERE tenant = :tenant
  AND (instr(lower(id), :plain) + instr(lower(agent), :plain) + instr(lower(identity), :plain) + instr(lower(coalesce(task, '')), :plain)) > 0
UNION SELECT session FROM action WHERE tenant = :tenant
  AND (instr(lower(tool), :plain) + instr(lower(args), :quoted) + instr(lower(result), :quoted)) > 0
UNION SELECT session FROM context WHERE tenant = :tenant AND (instr(lower(name), :plain) + instr(lower(text), :plain)) > 0
UNION SELECT session FROM attempt WHERE tenant = :tenant AND instr(lower(coalesce(note, '')), :plain) > 0
UNION SELECT session FROM outcome WHERE tenant = :tenant AND (instr(lower(ref), :plain) + instr(lower(coalesce(task_input, '')), :plain)
  + instr(lower(coalesce(observed, '')), :quoted) + instr(lower(coalesce(artifacts, '')), :quoted)
  + instr(lower(coalesce(verified_by, '')), :plain)) > 0
ORDER BY 1;

-- name: versions_of_sessions
-- What some runs (names as a JSON list) wrote.
SELECT v.id FROM json_each(:sessions) j CROSS JOIN version v ON v.tenant = :tenant AND v.session = j.value;

-- name: versions_by_author
-- What somebody wrote, under that name.
SELECT id FROM version WHERE tenant = :tenant AND author = :subject;

-- name: versions_by_identity
-- What was written with a credential of an owner.
SELECT id FROM version WHERE tenant = :tenant AND identity = :subject;

-- name: versions_by_entity
-- What is known at a path and below it.
SELECT v.id FROM path p CROSS JOIN version v ON v.tenant = p.tenant AND v.path = p.id
WHERE p.tenant = :tenant AND (p.path = :subject OR substr(p.path, 1, length(:subject) + 1) = :subject || '/');

-- name: versions_by_text
-- Versions in which a text stands anywhere.
SELECT id FROM version WHERE tenant = :tenant
  AND (instr(lower(key), :plain) + instr(lower(value), :quoted) + instr(lower(coalesce(why, '')), :plain) + instr(lower(author), :plain)
  + instr(lower(identity), :plain) + instr(lower(coalesce(applies_when, '')), :plain)) > 0;

-- name: readers_of
-- The runs that were served some versions (ids as a JSON list). Walks all reads.
SELECT DISTINCT r.session FROM read r WHERE r.tenant = :tenant AND r.served = 1
  AND r.version IN (SELECT value FROM json_each(:versions)) ORDER BY 1;

-- name: text_entries_of
-- Where unscoped search finds some versions (ids as a JSON list).
SELECT t.id FROM json_each(:versions) j CROSS JOIN text_entry t ON t.tenant = :tenant AND t.version = j.value;

-- name: drop_vectors
-- Of some versions (ids as a JSON list), in every space.
DELETE FROM vector WHERE tenant = :tenant AND version IN (SELECT value FROM json_each(:versions));

-- name: tasks_of_sessions
-- What some runs (names as a JSON list) were asked, as they began or as they ended.
SELECT s.task FROM json_each(:sessions) j CROSS JOIN session s ON s.tenant = :tenant AND s.id = j.value WHERE s.task IS NOT NULL
UNION SELECT o.task_input FROM json_each(:sessions) j CROSS JOIN outcome o ON o.tenant = :tenant AND o.session = j.value
WHERE o.task_input IS NOT NULL;

-- name: tasks_of_others
-- Which of some tasks (a JSON list) other runs had too, word for word, that are not erased. Walks all runs.
SELECT s.task FROM session s WHERE s.tenant = :tenant AND s.task IN (SELECT value FROM json_each(:tasks))
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = s.tenant AND e.session = s.id)
UNION SELECT o.task_input FROM outcome o WHERE o.tenant = :tenant AND o.task_input IN (SELECT value FROM json_each(:tasks))
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = o.tenant AND e.session = o.session);

-- name: forget_precedents_said
-- What runs came to use that were asked for these parts (their words as a JSON list).
DELETE FROM precedent WHERE tenant = :tenant AND (path, asked) IN (
  SELECT path, name FROM asked WHERE tenant = :tenant AND said IN (SELECT value FROM json_each(:said)));

-- name: forget_said
-- And those words, at whichever path.
DELETE FROM asked WHERE tenant = :tenant AND said IN (SELECT value FROM json_each(:said));
