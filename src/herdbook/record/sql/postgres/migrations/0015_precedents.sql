-- What runs were asked, part by part, and which claims they came to use: so that a note whose words are not those of the task is
-- found by the runs that needed it. Folded from outcomes as they count in evidence, and never more than they do.

-- A part of tasks at one entity path, and how many runs had it; the part named '' is all of them. The oldest are forgotten.
CREATE TABLE asked (
  tenant bigint NOT NULL,
  path bigint NOT NULL,
  name text COLLATE "C" NOT NULL, -- a digest of the words, numbers aside
  said text NOT NULL,
  runs float8 NOT NULL DEFAULT 0 CHECK (runs >= 0),
  at bigint NOT NULL,
  PRIMARY KEY (tenant, path, name),
  FOREIGN KEY (tenant, path) REFERENCES path (tenant, id)
);
GRANT UPDATE (runs, at), DELETE ON asked TO herdbook_app;

-- How much of those runs used a claim since it was there.
CREATE TABLE precedent (
  tenant bigint NOT NULL,
  path bigint NOT NULL,
  asked text COLLATE "C" NOT NULL,
  entry bigint NOT NULL,
  claim bytea NOT NULL,
  used float8 NOT NULL DEFAULT 0 CHECK (used >= 0),
  since float8 NOT NULL, -- how many runs there had been before
  wrote smallint NOT NULL CHECK (wrote IN (0, 1)), -- whether such a run wrote it
  PRIMARY KEY (tenant, path, asked, entry, claim),
  FOREIGN KEY (tenant, path) REFERENCES path (tenant, id)
);
GRANT UPDATE (used), DELETE ON precedent TO herdbook_app;
