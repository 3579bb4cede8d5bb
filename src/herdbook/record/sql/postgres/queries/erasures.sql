-- name: erasure_count
-- Whether anything was erased since a process last looked: then what it has cached is looked at again.
SELECT count(*) FROM erasure WHERE tenant = %(tenant)s;

-- name: erasure
-- One, with what its seal covers.
SELECT id, kind, subject, why, identity, at, sessions, versions, seal FROM erasure WHERE tenant = %(tenant)s AND id = %(erasure)s;

-- name: erasures
-- All, or those of one subject, the newest first.
SELECT id, kind, subject, why, identity, at, sessions, versions, seal FROM erasure
WHERE tenant = %(tenant)s AND (%(subject)s::bytea IS NULL OR subject = %(subject)s) ORDER BY at DESC, id LIMIT %(limit)s;

-- name: insert_erasure
-- Once an id.
INSERT INTO erasure (tenant, id, kind, subject, why, identity, at, sessions, versions, seal)
VALUES (%(tenant)s, %(erasure)s, %(kind)s, %(subject)s, %(why)s, %(identity)s, %(at)s, %(sessions)s, %(versions)s, %(seal)s);

-- name: insert_erased_session
-- The first erasure of a run counts.
INSERT INTO erased_session (tenant, session, erasure) SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[]) ON CONFLICT DO NOTHING;

-- name: insert_erased_version
-- The first erasure of a version counts.
INSERT INTO erased_version (tenant, version, erasure) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) ON CONFLICT DO NOTHING;

-- name: erased_sessions
-- Which of some runs (names as a JSON list) are erased.
SELECT e.session FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN erased_session e ON e.tenant = %(tenant)s AND e.session = j.value;

-- name: erased_versions
-- Which of some versions (ids as a JSON list) are erased.
SELECT e.version FROM jsonb_array_elements_text(%(versions)s::jsonb) j (value) JOIN erased_version e ON e.tenant = %(tenant)s AND e.version = j.value::bigint;

-- name: sessions_by_session
-- The run of a name.
SELECT id FROM session WHERE tenant = %(tenant)s AND id = %(subject)s;

-- name: sessions_by_author
-- The runs of an agent. Walks all runs, like those below: erasing is rare.
SELECT id FROM session WHERE tenant = %(tenant)s AND agent = %(subject)s ORDER BY id;

-- name: sessions_by_identity
-- The runs begun with a credential of an owner.
SELECT id FROM session WHERE tenant = %(tenant)s AND identity = %(subject)s ORDER BY id;

-- name: sessions_by_entity
-- The runs about a path and what is below it.
SELECT id FROM session WHERE tenant = %(tenant)s AND (entity = %(subject)s OR substr(entity, 1, length(%(subject)s::text) + 1) = %(subject)s::text || '/')
ORDER BY id;

-- name: sessions_by_text
-- The runs in which a text stands anywhere, in small letters or capitals; inside of JSON as it is quoted there.
SELECT id FROM session WHERE tenant = %(tenant)s
  AND (strpos(lower(id COLLATE "C"), %(plain)s) + strpos(lower(agent COLLATE "C"), %(plain)s) + strpos(lower(identity COLLATE "C"), %(plain)s) + strpos(lower(coalesce(task, '') COLLATE "C"), %(plain)s)) > 0
UNION SELECT session FROM action WHERE tenant = %(tenant)s
  AND (strpos(lower(tool COLLATE "C"), %(plain)s) + strpos(lower(args COLLATE "C"), %(quoted)s) + strpos(lower(result COLLATE "C"), %(quoted)s)) > 0
UNION SELECT session FROM context WHERE tenant = %(tenant)s AND (strpos(lower(name COLLATE "C"), %(plain)s) + strpos(lower(text COLLATE "C"), %(plain)s)) > 0
UNION SELECT session FROM attempt WHERE tenant = %(tenant)s AND strpos(lower(coalesce(note, '') COLLATE "C"), %(plain)s) > 0
UNION SELECT session FROM outcome WHERE tenant = %(tenant)s AND (strpos(lower(ref COLLATE "C"), %(plain)s) + strpos(lower(coalesce(task_input, '') COLLATE "C"), %(plain)s)
  + strpos(lower(coalesce(observed, '') COLLATE "C"), %(quoted)s) + strpos(lower(coalesce(artifacts, '') COLLATE "C"), %(quoted)s)
  + strpos(lower(coalesce(verified_by, '') COLLATE "C"), %(plain)s)) > 0
ORDER BY 1;

-- name: versions_of_sessions
-- What some runs (names as a JSON list) wrote.
SELECT v.id FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN version v ON v.tenant = %(tenant)s AND v.session = j.value;

-- name: versions_by_author
-- What somebody wrote, under that name.
SELECT id FROM version WHERE tenant = %(tenant)s AND author = %(subject)s;

-- name: versions_by_identity
-- What was written with a credential of an owner.
SELECT id FROM version WHERE tenant = %(tenant)s AND identity = %(subject)s;

-- name: versions_by_entity
-- What is known at a path and below it.
SELECT v.id FROM path p JOIN version v ON v.tenant = p.tenant AND v.path = p.id
WHERE p.tenant = %(tenant)s AND (p.path = %(subject)s OR substr(p.path, 1, length(%(subject)s::text) + 1) = %(subject)s::text || '/');

-- name: versions_by_text
-- Versions in which a text stands anywhere.
SELECT id FROM version WHERE tenant = %(tenant)s
  AND (strpos(lower(key COLLATE "C"), %(plain)s) + strpos(lower(value COLLATE "C"), %(quoted)s) + strpos(lower(coalesce(why, '') COLLATE "C"), %(plain)s) + strpos(lower(author COLLATE "C"), %(plain)s)
  + strpos(lower(identity COLLATE "C"), %(plain)s) + strpos(lower(coalesce(applies_when, '') COLLATE "C"), %(plain)s)) > 0;

-- name: readers_of
-- The runs that were served some versions (ids as a JSON list). Walks all reads.
SELECT DISTINCT r.session FROM read r WHERE r.tenant = %(tenant)s AND r.served = 1
  AND r.version IN (SELECT value::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb)) ORDER BY 1;

-- name: text_entries_of
-- Where unscoped search finds some versions (ids as a JSON list).
SELECT t.entry FROM jsonb_array_elements_text(%(versions)s::jsonb) j (value) JOIN text_entry t ON t.tenant = %(tenant)s AND t.version = j.value::bigint;

-- name: drop_vectors
-- Of some versions (ids as a JSON list), in every space.
DELETE FROM vector WHERE tenant = %(tenant)s AND version IN (SELECT value::bigint FROM jsonb_array_elements_text(%(versions)s::jsonb));

-- name: tasks_of_sessions
-- What some runs (names as a JSON list) were asked, as they began or as they ended.
SELECT s.task FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value) JOIN session s ON s.tenant = %(tenant)s AND s.id = j.value
WHERE s.task IS NOT NULL
UNION SELECT o.task_input FROM jsonb_array_elements_text(%(sessions)s::jsonb) j (value)
JOIN outcome o ON o.tenant = %(tenant)s AND o.session = j.value WHERE o.task_input IS NOT NULL;

-- name: tasks_of_others
-- Which of some tasks (a JSON list) other runs had too, word for word, that are not erased. Walks all runs.
SELECT s.task FROM session s WHERE s.tenant = %(tenant)s AND s.task IN (SELECT j.value FROM jsonb_array_elements_text(%(tasks)s::jsonb) j (value))
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = s.tenant AND e.session = s.id)
UNION SELECT o.task_input FROM outcome o WHERE o.tenant = %(tenant)s
  AND o.task_input IN (SELECT j.value FROM jsonb_array_elements_text(%(tasks)s::jsonb) j (value))
  AND NOT EXISTS (SELECT 1 FROM erased_session e WHERE e.tenant = o.tenant AND e.session = o.session);

-- name: forget_precedents_said
-- What runs came to use that were asked for these parts (their words as a JSON list).
DELETE FROM precedent WHERE tenant = %(tenant)s AND (path, asked) IN (
  SELECT path, name FROM asked WHERE tenant = %(tenant)s AND said IN (SELECT j.value FROM jsonb_array_elements_text(%(said)s::jsonb) j (value)));

-- name: forget_said
-- And those words, at whichever path.
DELETE FROM asked WHERE tenant = %(tenant)s AND said IN (SELECT j.value FROM jsonb_array_elements_text(%(said)s::jsonb) j (value));
