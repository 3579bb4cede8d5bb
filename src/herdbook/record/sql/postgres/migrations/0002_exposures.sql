-- What the ranking saw when it showed something, so that it can be learnt from; and the numbers people and calibration may set.

-- One briefing or search: what its exposures have in common. Reads that were asked for by key have none.
CREATE TABLE serving (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  asked text COLLATE "C", -- the entity path that was asked about; NULL for a search of everything
  how text NOT NULL CHECK (how IN ('briefing', 'search')),
  arm text NOT NULL CHECK (arm IN ('on', 'holdback', 'control')),
  policy text NOT NULL, -- the ranking rule, its ranker and the form of the features
  candidates bigint NOT NULL CHECK (candidates >= 0),
  at bigint NOT NULL,
  PRIMARY KEY (tenant, session, id)
);

-- Features are numbers in the order that the policy's form names; as they were, since read later they would hold the outcome itself.
ALTER TABLE read ADD COLUMN serving bigint;
ALTER TABLE read ADD COLUMN features text CHECK (features IS NULL OR features::json IS NOT NULL);
ALTER TABLE noted ADD COLUMN serving bigint;
ALTER TABLE noted ADD COLUMN features text CHECK (features IS NULL OR features::json IS NOT NULL);

-- Settings of ranking, credit and experiments: per tenant and entity path, and what lies below it; the nearest path wins and the
-- newest row of a name counts. Appended, so that an earlier value can be found again; NULL takes a value back.
CREATE TABLE tuning (
  tenant bigint NOT NULL REFERENCES tenant (id),
  path text COLLATE "C" NOT NULL CHECK (length(path) <= 512),
  name text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  value text CHECK (value IS NULL OR value::json IS NOT NULL),
  why text,
  identity text NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, path, name, n)
);
CREATE TRIGGER tuning_is_immutable_v1 BEFORE UPDATE ON tuning FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER tuning_is_kept_v1 BEFORE DELETE ON tuning FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
