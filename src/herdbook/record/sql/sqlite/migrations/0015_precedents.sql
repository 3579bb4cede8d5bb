-- What runs were asked, part by part, and which claims they came to use: so that a note whose words are not those of the task is
-- found by the runs that needed it. Folded from outcomes as they count in evidence, and never more than they do.

-- A part of tasks at one entity path, and how many runs had it; the part named '' is all of them. The oldest are forgotten.
CREATE TABLE asked (
  tenant INTEGER NOT NULL,
  path INTEGER NOT NULL,
  name TEXT NOT NULL, -- a digest of the words, numbers aside
  said TEXT NOT NULL,
  runs REAL NOT NULL DEFAULT 0 CHECK (runs >= 0),
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, path, name),
  FOREIGN KEY (tenant, path) REFERENCES path (tenant, id)
) STRICT, WITHOUT ROWID;

-- How much of those runs used a claim since it was there.
CREATE TABLE precedent (
  tenant INTEGER NOT NULL,
  path INTEGER NOT NULL,
  asked TEXT NOT NULL,
  entry INTEGER NOT NULL,
  claim BLOB NOT NULL,
  used REAL NOT NULL DEFAULT 0 CHECK (used >= 0),
  since REAL NOT NULL, -- how many runs there had been before
  wrote INTEGER NOT NULL CHECK (wrote IN (0, 1)), -- whether such a run wrote it
  PRIMARY KEY (tenant, path, asked, entry, claim),
  FOREIGN KEY (tenant, path) REFERENCES path (tenant, id)
) STRICT, WITHOUT ROWID;
