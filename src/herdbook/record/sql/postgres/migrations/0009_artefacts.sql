-- Datasets and models of the slow loop: what each was made from. The row is never changed; what became of it is appended below.
CREATE TABLE artefact (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL CHECK (kind IN ('dataset', 'model')),
  name text COLLATE "C" NOT NULL,
  hash text NOT NULL CHECK (length(hash) = 64), -- SHA-256 of what lies in its folder, as its maker defines it
  parents text NOT NULL CHECK (parents::json IS NOT NULL), -- the artefacts it was made from, as a JSON list
  lineage text NOT NULL CHECK (lineage::json IS NOT NULL), -- snapshot, filters, seeds: how to make it again
  card text,
  identity text NOT NULL,
  at bigint NOT NULL,
  seal bytea,
  PRIMARY KEY (tenant, id)
);
CREATE TRIGGER artefact_is_immutable_v1 BEFORE UPDATE ON artefact FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER artefact_is_kept_v1 BEFORE DELETE ON artefact FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

-- What became of it: the newest row counts, the others are its history.
CREATE TABLE artefact_state (
  tenant bigint NOT NULL,
  artefact text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  status text NOT NULL,
  metrics text NOT NULL CHECK (metrics::json IS NOT NULL),
  why text,
  identity text NOT NULL,
  at bigint NOT NULL,
  seal bytea,
  PRIMARY KEY (tenant, artefact, n),
  FOREIGN KEY (tenant, artefact) REFERENCES artefact (tenant, id)
);
CREATE TRIGGER artefact_state_is_immutable_v1 BEFORE UPDATE ON artefact_state FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER artefact_state_is_kept_v1 BEFORE DELETE ON artefact_state FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

-- Which runs a dataset has rows from. By run first: the question is which datasets hold somebody's runs.
CREATE TABLE artefact_run (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  artefact text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, session, artefact),
  FOREIGN KEY (tenant, artefact) REFERENCES artefact (tenant, id)
);
