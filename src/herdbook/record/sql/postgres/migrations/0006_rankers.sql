-- Rankers that were trained on what was shown: sealed JSON, never changed, named by `tune ranker=`.
CREATE TABLE ranker (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL,
  artefact text NOT NULL CHECK (artefact::json IS NOT NULL),
  identity text NOT NULL,
  at bigint NOT NULL,
  seal bytea,
  PRIMARY KEY (tenant, id)
);
CREATE TRIGGER ranker_is_immutable_v1 BEFORE UPDATE ON ranker FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER ranker_is_kept_v1 BEFORE DELETE ON ranker FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
