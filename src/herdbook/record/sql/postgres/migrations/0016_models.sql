-- Which model answers under an alias, and what it was before: appended, the newest counts.
CREATE TABLE model_route (
  tenant bigint NOT NULL REFERENCES tenant (id),
  alias text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  route text NOT NULL CHECK (route::json IS NOT NULL),
  why text,
  identity text NOT NULL,
  at bigint NOT NULL,
  seal bytea,
  PRIMARY KEY (tenant, alias, n)
);
CREATE TRIGGER model_route_is_immutable_v1 BEFORE UPDATE ON model_route FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER model_route_is_kept_v1 BEFORE DELETE ON model_route FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

-- Every call that a model answered: by alias and model first, since what is asked is how the runs of a model ended.
CREATE TABLE model_call (
  tenant bigint NOT NULL,
  alias text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  n bigint NOT NULL, -- the route as it was
  prompt_tokens bigint,
  answer_tokens bigint,
  milliseconds bigint NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, alias, model, session, id),
  FOREIGN KEY (tenant, alias, n) REFERENCES model_route (tenant, alias, n)
);
