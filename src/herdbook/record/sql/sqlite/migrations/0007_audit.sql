-- Who did what through a credential or a listener. Clustered by time, as it is asked for; each process adds to a chain of its own.
CREATE TABLE audit (
  tenant INTEGER NOT NULL,
  at INTEGER NOT NULL,
  request TEXT NOT NULL,
  identity TEXT NOT NULL,
  key TEXT,
  box TEXT,
  channel TEXT NOT NULL,
  verb TEXT NOT NULL,
  entity TEXT,
  what TEXT NOT NULL CHECK (json_valid(what)),
  code TEXT NOT NULL,
  writer TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  before BLOB, -- the seal of the row before it in its chain
  seal BLOB,
  PRIMARY KEY (tenant, at, writer, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_is_immutable_v1 BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER audit_is_kept_v1 BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- How much of what a key, or a tenant as a whole (under ''), may ask for is left, and as of when: one bucket for every server.
CREATE TABLE allowance (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  subject TEXT NOT NULL,
  per TEXT NOT NULL CHECK (per IN ('minute', 'day')),
  remaining REAL NOT NULL CHECK (remaining >= 0),
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, subject, per)
) STRICT, WITHOUT ROWID;
