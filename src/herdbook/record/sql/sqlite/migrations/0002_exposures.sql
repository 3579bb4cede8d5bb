-- What the ranking saw when it showed something, so that it can be learnt from; and the numbers people and calibration may set.

-- One briefing or search: what its exposures have in common. Reads that were asked for by key have none.
CREATE TABLE serving (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  id INTEGER NOT NULL,
  asked TEXT, -- the entity path that was asked about; NULL for a search of everything
  how TEXT NOT NULL CHECK (how IN ('briefing', 'search')),
  arm TEXT NOT NULL CHECK (arm IN ('on', 'holdback', 'control')),
  policy TEXT NOT NULL, -- the ranking rule, its ranker and the form of the features
  candidates INTEGER NOT NULL CHECK (candidates >= 0),
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, session, id)
) STRICT, WITHOUT ROWID;

-- Features are numbers in the order that the policy's form names; as they were, since read later they would hold the outcome itself.
ALTER TABLE read ADD COLUMN serving INTEGER;
ALTER TABLE read ADD COLUMN features TEXT CHECK (features IS NULL OR json_valid(features));

-- Settings of ranking, credit and experiments: per tenant and entity path, and what lies below it; the nearest path wins and the
-- newest row of a name counts. Appended, so that an earlier value can be found again; NULL takes a value back.
CREATE TABLE tuning (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  path TEXT NOT NULL CHECK (length(path) <= 512),
  name TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  value TEXT CHECK (value IS NULL OR json_valid(value)),
  why TEXT,
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, path, name, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tuning_is_immutable_v1 BEFORE UPDATE ON tuning BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER tuning_is_kept_v1 BEFORE DELETE ON tuning BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
