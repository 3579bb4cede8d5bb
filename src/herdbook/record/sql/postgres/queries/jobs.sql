-- name: claim_job_key
-- Locks the key's row, made if need be: whoever comes second waits here, and then sees the first one's job.
INSERT INTO job_key (tenant, queue, key, job, put_at) VALUES (%(tenant)s, %(queue)s, %(key)s, %(job)s, %(at)s)
ON CONFLICT (tenant, queue, key) DO UPDATE SET job = job_key.job
RETURNING job, put_at, repeats;

-- name: renew_job_key
-- A new job under a key that had one.
UPDATE job_key SET job = %(job)s, put_at = %(at)s, repeats = 0, repeated_at = NULL WHERE tenant = %(tenant)s AND queue = %(queue)s AND key = %(key)s;

-- name: repeat_job_key
-- One more of what is looked at already.
UPDATE job_key SET repeats = repeats + 1, repeated_at = %(at)s WHERE tenant = %(tenant)s AND queue = %(queue)s AND key = %(key)s;

-- name: insert_job
-- Waiting, until a worker takes it.
INSERT INTO job (tenant, id, queue, key, body, budget_seconds, put_at, state)
VALUES (%(tenant)s, %(job)s, %(queue)s, %(key)s, %(body)s, %(budget)s, %(at)s, 'waiting');

-- name: insert_job_delivery
-- The first one counts; nothing comes back for a replay.
INSERT INTO job_delivery (tenant, queue, delivery, job) VALUES (%(tenant)s, %(queue)s, %(delivery)s, %(job)s)
ON CONFLICT (tenant, queue, delivery) DO NOTHING RETURNING job;

-- name: job_delivery
-- The job a delivery went into.
SELECT job FROM job_delivery WHERE tenant = %(tenant)s AND queue = %(queue)s AND delivery = %(delivery)s;

-- name: job
-- One job, with how often its key was put again since.
SELECT j.id, j.queue, j.key, j.body, j.budget_seconds, j.put_at, j.state, j.attempt, j.worker, j.lease_until, j.deadline_at, j.progress,
       j.result, j.ended_at, coalesce(k.repeats, 0)
FROM job j LEFT JOIN job_key k ON k.tenant = j.tenant AND k.queue = j.queue AND k.key = j.key AND k.job = j.id
WHERE j.tenant = %(tenant)s AND j.id = %(job)s;

-- name: job_held
-- What this worker holds already: asked again after an answer that was lost, it gets the same.
SELECT id FROM job
WHERE tenant = %(tenant)s AND queue = %(queue)s AND ended_at IS NULL AND state = 'running' AND worker = %(worker)s AND lease_until > %(at)s
ORDER BY put_at, id LIMIT 1;

-- name: job_next
-- The oldest that waits, or that its worker has let go of.
SELECT id FROM job
WHERE tenant = %(tenant)s AND queue = %(queue)s AND ended_at IS NULL AND attempt < %(attempts)s AND (state = 'waiting' OR lease_until <= %(at)s)
ORDER BY put_at, id LIMIT 1;

-- name: take_job
-- A fresh attempt: what an earlier worker still says about this job is refused from now on.
UPDATE job SET state = 'running', worker = %(worker)s, attempt = attempt + 1, lease_until = %(lease_until)s, deadline_at = %(deadline)s
WHERE tenant = %(tenant)s AND id = %(job)s;

-- name: beat_job
-- Keep the lease, and what a next worker would have to know.
UPDATE job SET lease_until = %(lease_until)s, progress = coalesce(%(progress)s::text, progress) WHERE tenant = %(tenant)s AND id = %(job)s;

-- name: end_job
-- Once and for all. What was done has its result; how far the others came is kept for whoever looks into them.
UPDATE job SET state = %(state)s, worker = NULL, lease_until = NULL, result = %(result)s, ended_at = %(at)s,
  progress = CASE WHEN %(state)s = 'done' THEN 'null' ELSE progress END
WHERE tenant = %(tenant)s AND id = %(job)s;

-- name: jobs_given_up
-- Tried as often as a job is tried, and nobody holds it.
SELECT id FROM job
WHERE tenant = %(tenant)s AND queue = %(queue)s AND ended_at IS NULL AND attempt >= %(attempts)s AND (state = 'waiting' OR lease_until <= %(at)s)
ORDER BY put_at, id LIMIT 100;

-- name: jobs
-- Newest first, for whoever looks.
SELECT j.id, j.queue, j.key, j.body, j.budget_seconds, j.put_at, j.state, j.attempt, j.worker, j.lease_until, j.deadline_at, j.progress,
       j.result, j.ended_at, coalesce(k.repeats, 0)
FROM job j LEFT JOIN job_key k ON k.tenant = j.tenant AND k.queue = j.queue AND k.key = j.key AND k.job = j.id
WHERE j.tenant = %(tenant)s AND j.queue = %(queue)s AND (%(key)s::text IS NULL OR j.key = %(key)s) AND (%(open)s = 0 OR j.ended_at IS NULL)
ORDER BY j.put_at DESC, j.id DESC LIMIT %(limit)s;
