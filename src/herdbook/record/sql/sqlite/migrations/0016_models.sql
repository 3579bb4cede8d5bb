-- Which model answers under an alias, and what it was before: appended, the newest counts.
CREATE TABLE model_route (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  alias TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  route TEXT NOT NULL CHECK (json_valid(route)),
  why TEXT,
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  seal BLOB,
  PRIMARY KEY (tenant, alias, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER model_route_is_immutable_v1 BEFORE UPDATE ON model_route BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER model_route_is_kept_v1 BEFORE DELETE ON model_route BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- Every call that a model answered: by alias and model first, since what is asked is how the runs of a model ended.
CREATE TABLE model_call (
  tenant INTEGER NOT NULL,
  alias TEXT NOT NULL,
  model TEXT NOT NULL,
  session TEXT NOT NULL,
  id INTEGER NOT NULL,
  n INTEGER NOT NULL, -- the route as it was
  prompt_tokens INTEGER,
  answer_tokens INTEGER,
  milliseconds INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, alias, model, session, id),
  FOREIGN KEY (tenant, alias, n) REFERENCES model_route (tenant, alias, n)
) STRICT, WITHOUT ROWID;
