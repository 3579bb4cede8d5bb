-- Rankers that were trained on what was shown: sealed JSON, never changed, named by `tune ranker=`.
CREATE TABLE ranker (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL,
  artefact TEXT NOT NULL CHECK (json_valid(artefact)),
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  seal BLOB,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER ranker_is_immutable_v1 BEFORE UPDATE ON ranker BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER ranker_is_kept_v1 BEFORE DELETE ON ranker BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
