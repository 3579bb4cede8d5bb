-- Erasures: whose runs and entries are told to nobody any more. Rows stay as they were sealed; from here on nothing shows them.
CREATE TABLE erasure (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject BLOB NOT NULL, -- a keyed digest: who was erased is told to those who ask by name
  why TEXT,
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  sessions INTEGER NOT NULL CHECK (sessions >= 0),
  versions INTEGER NOT NULL CHECK (versions >= 0),
  seal BLOB,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER erasure_is_immutable_v1 BEFORE UPDATE ON erasure BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER erasure_is_kept_v1 BEFORE DELETE ON erasure BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- What each came to, row by row: what somebody writes later is not erased by what was asked before.
CREATE TABLE erased_session (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  erasure TEXT NOT NULL,
  PRIMARY KEY (tenant, session),
  FOREIGN KEY (tenant, erasure) REFERENCES erasure (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER erased_session_is_immutable_v1 BEFORE UPDATE ON erased_session BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER erased_session_is_kept_v1 BEFORE DELETE ON erased_session BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
-- And the same of versions of entries.
CREATE TABLE erased_version (
  tenant INTEGER NOT NULL,
  version INTEGER NOT NULL,
  erasure TEXT NOT NULL,
  PRIMARY KEY (tenant, version),
  FOREIGN KEY (tenant, erasure) REFERENCES erasure (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER erased_version_is_immutable_v1 BEFORE UPDATE ON erased_version BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER erased_version_is_kept_v1 BEFORE DELETE ON erased_version BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
