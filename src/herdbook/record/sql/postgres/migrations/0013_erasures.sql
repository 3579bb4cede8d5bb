-- Erasures: whose runs and entries are told to nobody any more. Rows stay as they were sealed; from here on nothing shows them.
CREATE TABLE erasure (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  subject bytea NOT NULL, -- a keyed digest: who was erased is told to those who ask by name
  why text,
  identity text NOT NULL,
  at bigint NOT NULL,
  sessions bigint NOT NULL CHECK (sessions >= 0),
  versions bigint NOT NULL CHECK (versions >= 0),
  seal bytea,
  PRIMARY KEY (tenant, id)
);
CREATE TRIGGER erasure_is_immutable_v1 BEFORE UPDATE ON erasure FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER erasure_is_kept_v1 BEFORE DELETE ON erasure FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

-- What each came to, row by row: what somebody writes later is not erased by what was asked before.
CREATE TABLE erased_session (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  erasure text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, session),
  FOREIGN KEY (tenant, erasure) REFERENCES erasure (tenant, id)
);
CREATE TRIGGER erased_session_is_immutable_v1 BEFORE UPDATE ON erased_session FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER erased_session_is_kept_v1 BEFORE DELETE ON erased_session FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
-- And the same of versions of entries.
CREATE TABLE erased_version (
  tenant bigint NOT NULL,
  version bigint NOT NULL,
  erasure text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, version),
  FOREIGN KEY (tenant, erasure) REFERENCES erasure (tenant, id)
);
CREATE TRIGGER erased_version_is_immutable_v1 BEFORE UPDATE ON erased_version FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER erased_version_is_kept_v1 BEFORE DELETE ON erased_version FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
