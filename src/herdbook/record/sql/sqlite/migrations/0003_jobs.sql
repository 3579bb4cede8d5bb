-- Work that waits for a worker: put once for each key, taken under a lease, ended once. Ended rows stay, for whoever asks what was done.
CREATE TABLE job (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL,
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  budget_seconds INTEGER NOT NULL CHECK (budget_seconds > 0),
  put_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed', 'dead')),
  attempt INTEGER NOT NULL DEFAULT 0,
  worker TEXT,
  lease_until INTEGER,
  deadline_at INTEGER,
  progress TEXT NOT NULL DEFAULT 'null',
  result TEXT NOT NULL DEFAULT 'null',
  ended_at INTEGER,
  PRIMARY KEY (tenant, id),
  CHECK ((state = 'running') = (lease_until IS NOT NULL AND worker IS NOT NULL)),
  CHECK ((state IN ('done', 'failed', 'dead')) = (ended_at IS NOT NULL))
) STRICT;
-- What a worker looks through: jobs that have not ended, oldest first.
CREATE INDEX job_open ON job (tenant, queue, put_at, id) WHERE ended_at IS NULL;
-- What a person looks through: newest first.
CREATE INDEX job_newest ON job (tenant, queue, put_at);

-- The newest job of each key: the row that makes two deliveries at once into one job.
CREATE TABLE job_key (
  tenant INTEGER NOT NULL,
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  job TEXT NOT NULL,
  put_at INTEGER NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 0,
  repeated_at INTEGER,
  PRIMARY KEY (tenant, queue, key)
) STRICT, WITHOUT ROWID;

-- Every delivery that was told apart by its sender, and the job it went into: replayed, it does nothing.
CREATE TABLE job_delivery (
  tenant INTEGER NOT NULL,
  queue TEXT NOT NULL,
  delivery TEXT NOT NULL,
  job TEXT NOT NULL,
  PRIMARY KEY (tenant, queue, delivery)
) STRICT, WITHOUT ROWID;
