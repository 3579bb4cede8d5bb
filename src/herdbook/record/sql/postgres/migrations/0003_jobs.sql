-- Work that waits for a worker: put once for each key, taken under a lease, ended once. Ended rows stay, for whoever asks what was done.
CREATE TABLE job (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  body text NOT NULL,
  budget_seconds bigint NOT NULL CHECK (budget_seconds > 0),
  put_at bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed', 'dead')),
  attempt bigint NOT NULL DEFAULT 0,
  worker text,
  lease_until bigint,
  deadline_at bigint,
  progress text NOT NULL DEFAULT 'null',
  result text NOT NULL DEFAULT 'null',
  ended_at bigint,
  PRIMARY KEY (tenant, id),
  CHECK ((state = 'running') = (lease_until IS NOT NULL AND worker IS NOT NULL)),
  CHECK ((state IN ('done', 'failed', 'dead')) = (ended_at IS NOT NULL))
) WITH (fillfactor = 80);
GRANT UPDATE (state, attempt, worker, lease_until, deadline_at, progress, result, ended_at) ON job TO herdbook_app;
-- What a worker looks through: jobs that have not ended, oldest first.
CREATE INDEX job_open ON job (tenant, queue, put_at, id) WHERE ended_at IS NULL;
-- What a person looks through: newest first.
CREATE INDEX job_newest ON job (tenant, queue, put_at);

-- The newest job of each key: the row that makes two deliveries at once into one job.
CREATE TABLE job_key (
  tenant bigint NOT NULL,
  queue text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  job text NOT NULL,
  put_at bigint NOT NULL,
  repeats bigint NOT NULL DEFAULT 0,
  repeated_at bigint,
  PRIMARY KEY (tenant, queue, key)
);
GRANT UPDATE (job, put_at, repeats, repeated_at) ON job_key TO herdbook_app;

-- Every delivery that was told apart by its sender, and the job it went into: replayed, it does nothing.
CREATE TABLE job_delivery (
  tenant bigint NOT NULL,
  queue text COLLATE "C" NOT NULL,
  delivery text COLLATE "C" NOT NULL,
  job text NOT NULL,
  PRIMARY KEY (tenant, queue, delivery)
);
