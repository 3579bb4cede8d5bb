-- Datasets and models of the slow loop: what each was made from. The row is never changed; what became of it is appended below.
CREATE TABLE artefact (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('dataset', 'model')),
  name TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length(hash) = 64), -- SHA-256 of what lies in its folder, as its maker defines it
  parents TEXT NOT NULL CHECK (json_valid(parents)), -- the artefacts it was made from, as a JSON list
  lineage TEXT NOT NULL CHECK (json_valid(lineage)), -- snapshot, filters, seeds: how to make it again
  card TEXT,
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  seal BLOB,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER artefact_is_immutable_v1 BEFORE UPDATE ON artefact BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER artefact_is_kept_v1 BEFORE DELETE ON artefact BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- What became of it: the newest row counts, the others are its history.
CREATE TABLE artefact_state (
  tenant INTEGER NOT NULL,
  artefact TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  status TEXT NOT NULL,
  metrics TEXT NOT NULL CHECK (json_valid(metrics)),
  why TEXT,
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  seal BLOB,
  PRIMARY KEY (tenant, artefact, n),
  FOREIGN KEY (tenant, artefact) REFERENCES artefact (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER artefact_state_is_immutable_v1 BEFORE UPDATE ON artefact_state BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER artefact_state_is_kept_v1 BEFORE DELETE ON artefact_state BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- Which runs a dataset has rows from. By run first: the question is which datasets hold somebody's runs.
CREATE TABLE artefact_run (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  artefact TEXT NOT NULL,
  PRIMARY KEY (tenant, session, artefact),
  FOREIGN KEY (tenant, artefact) REFERENCES artefact (tenant, id)
) STRICT, WITHOUT ROWID;
