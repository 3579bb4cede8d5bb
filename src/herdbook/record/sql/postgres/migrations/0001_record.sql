-- The record on PostgreSQL, first form: the tables of the SQLite record, column by column. Every key, unique and foreign key begins
-- with tenant; ids and times come from the application. Nothing here needs an extension. Texts compare by their bytes (COLLATE "C"),
-- so that both engines sort alike. Who may see a row, and what else may be done to it, is in security.sql and in the grants below.

-- Whose rows they are. The row's lock is the tenant's turn to write; folded is the last number given to a read. Tenant 0 is the server
-- itself: whoever makes a tenant holds its turn, so that a name is given once though no constraint could say so across a cluster.
CREATE TABLE tenant (
  id bigint NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  folded bigint NOT NULL DEFAULT 0
);
GRANT UPDATE (folded) ON tenant TO herdbook_app;

-- Small facts about the record itself, of no tenant: the seal check, how far the text index has come.
CREATE TABLE meta (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  value text NOT NULL
);
GRANT UPDATE ON meta TO herdbook_app;

-- Paths are stored once. outcomes and successes are the entity's own base rate, which evidence is measured against.
CREATE TABLE path (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id bigint NOT NULL,
  path text COLLATE "C" NOT NULL CHECK (length(path) BETWEEN 1 AND 512),
  outcomes bigint NOT NULL DEFAULT 0 CHECK (outcomes >= 0),
  successes bigint NOT NULL DEFAULT 0 CHECK (successes BETWEEN 0 AND outcomes),
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, path)
) WITH (fillfactor = 80);
GRANT UPDATE (outcomes, successes) ON path TO herdbook_app;

-- The head of an entry: its current version, and the last one whose claim stood. One row serialises the writers of one key.
CREATE TABLE entry (
  tenant bigint NOT NULL,
  path bigint NOT NULL,
  key text COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 256),
  id bigint NOT NULL,
  number bigint NOT NULL CHECK (number >= 1),
  version bigint NOT NULL,
  claim bytea NOT NULL,
  standing_version bigint,
  PRIMARY KEY (tenant, path, key),
  FOREIGN KEY (tenant, path) REFERENCES path (tenant, id)
) WITH (fillfactor = 80);
GRANT UPDATE (number, version, claim, standing_version) ON entry TO herdbook_app;

-- What is known, one row a version, never changed. Ids grow in the order of a tenant's commits, which is how the text index follows.
CREATE TABLE version (
  tenant bigint NOT NULL,
  id bigint NOT NULL,
  entry bigint NOT NULL,
  path bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  number bigint NOT NULL CHECK (number >= 1),
  claim bytea NOT NULL,
  value text NOT NULL CHECK (value::json IS NOT NULL),
  why text,
  kind text NOT NULL CHECK (kind IN ('fact', 'belief', 'experience')),
  worked smallint CHECK (worked IN (0, 1)),
  confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  applies_when text,
  expires_at bigint,
  links text CHECK (links IS NULL OR links::json IS NOT NULL),
  origin text NOT NULL CHECK (origin IN ('principal', 'operator', 'agent', 'external')),
  author text NOT NULL,
  identity text NOT NULL,
  session text COLLATE "C",
  box text,
  at bigint NOT NULL CHECK (at >= 0),
  request text COLLATE "C" NOT NULL,
  body bytea NOT NULL, -- the digest of the request, so that its id under another body is refused
  answered text NOT NULL CHECK (answered::json IS NOT NULL), -- the first answer, so that a retry gets it again
  seal bytea,
  PRIMARY KEY (tenant, id),
  -- A request id makes one version, for ever.
  UNIQUE (tenant, request),
  -- Versions of an entry are 1..n; a trigger refuses a gap, this a duplicate.
  UNIQUE (tenant, entry, number),
  FOREIGN KEY (tenant, path, key) REFERENCES entry (tenant, path, key)
);
-- A session's own writes, which its outcome can make stand.
CREATE INDEX version_of_session ON version (tenant, session, id) WHERE session IS NOT NULL;

-- What versions assert; trust belongs here. Many versions can state one claim, which its content's digest names within the entry.
CREATE TABLE claim (
  tenant bigint NOT NULL,
  path bigint NOT NULL,
  entry bigint NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 16),
  initial double precision NOT NULL CHECK (initial BETWEEN 0 AND 1),
  confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  moves bigint NOT NULL DEFAULT 0 CHECK (moves >= 0),
  recalls bigint NOT NULL DEFAULT 0 CHECK (recalls >= 0),
  observed bigint NOT NULL DEFAULT 0 CHECK (observed >= 0),
  corroborated bigint NOT NULL DEFAULT 0 CHECK (corroborated >= 0),
  held double precision NOT NULL DEFAULT 0,
  failed double precision NOT NULL DEFAULT 0,
  failed_since double precision NOT NULL DEFAULT 0,
  affirmed bigint NOT NULL DEFAULT 0 CHECK (affirmed >= 0),
  affirmed_at bigint,
  last_type text,
  last_ref text,
  last_at bigint,
  PRIMARY KEY (tenant, path, entry, digest)
) WITH (fillfactor = 70);
GRANT UPDATE (confidence, moves, recalls, observed, corroborated, held, failed, failed_since, affirmed, affirmed_at, last_type, last_ref,
  last_at) ON claim TO herdbook_app;

-- One run of one agent in one box.
CREATE TABLE session (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL,
  agent text NOT NULL,
  identity text NOT NULL,
  channel text NOT NULL,
  box text,
  entity text,
  task text,
  started_at bigint NOT NULL,
  ended_at bigint,
  PRIMARY KEY (tenant, id)
);
GRANT UPDATE (ended_at) ON session TO herdbook_app;

-- Exposures as they are noted, in a commit that waits for no disk and no lock: visible to every server at once. The tenant's next
-- write moves them into read inside its own durable transaction.
CREATE TABLE noted (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  version bigint NOT NULL,
  rank bigint NOT NULL,
  how text NOT NULL CHECK (how IN ('briefing', 'read', 'search')),
  served smallint NOT NULL CHECK (served IN (0, 1)),
  probability double precision NOT NULL CHECK (probability > 0 AND probability <= 1),
  at bigint NOT NULL,
  arrived bigint GENERATED ALWAYS AS IDENTITY, -- the clocks of two servers may differ
  PRIMARY KEY (tenant, session, id)
);
GRANT DELETE ON noted TO herdbook_app;

-- Exposures: what a session was served or had withheld. A withheld one is never a cause.
CREATE TABLE read (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  version bigint NOT NULL,
  rank bigint NOT NULL,
  how text NOT NULL CHECK (how IN ('briefing', 'read', 'search')),
  served smallint NOT NULL CHECK (served IN (0, 1)),
  probability double precision NOT NULL CHECK (probability > 0 AND probability <= 1),
  at bigint NOT NULL,
  folded bigint NOT NULL, -- when it came into the record: what a sealed trace had seen
  PRIMARY KEY (tenant, session, id)
);

-- Tool calls as they happened, in order within the session.
CREATE TABLE action (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  tool text NOT NULL,
  args text NOT NULL CHECK (args::json IS NOT NULL),
  result text NOT NULL CHECK (result::json IS NOT NULL),
  ok smallint CHECK (ok IN (0, 1)),
  at bigint NOT NULL,
  PRIMARY KEY (tenant, session, n),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
);

-- What the agent was given: prompts, files, messages.
CREATE TABLE context (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  name text NOT NULL,
  text text NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, session, n),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
);

-- Tries within a run. A failed one charges what it used when the outcome comes.
CREATE TABLE attempt (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  result text NOT NULL CHECK (result IN ('success', 'failure')),
  used text NOT NULL CHECK (used::json IS NOT NULL),
  note text,
  at bigint NOT NULL,
  charged smallint NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
  PRIMARY KEY (tenant, session, n),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
);
GRANT UPDATE (charged) ON attempt TO herdbook_app;

-- What each type of outcome does to confidence: per tenant, and per entity path and what lies below it. The nearest path wins.
CREATE TABLE multiplier (
  tenant bigint NOT NULL REFERENCES tenant (id),
  path text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL CHECK (type IN ('success', 'minor_failure', 'failure', 'critical_failure')),
  factor double precision NOT NULL CHECK (factor > 0 AND factor <= 2),
  PRIMARY KEY (tenant, path, type)
);
GRANT UPDATE (factor), DELETE ON multiplier TO herdbook_app;

-- What happened. The row is never changed: attestations and revisions are rows of their own.
CREATE TABLE outcome (
  tenant bigint NOT NULL,
  id bigint NOT NULL,
  ref text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  type text NOT NULL CHECK (type IN ('success', 'minor_failure', 'failure', 'critical_failure')),
  identity text NOT NULL,
  box text,
  task_input text,
  observed text CHECK (observed IS NULL OR observed::json IS NOT NULL),
  artifacts text CHECK (artifacts IS NULL OR artifacts::json IS NOT NULL),
  verified_by text,
  at bigint NOT NULL,
  seal bytea,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, ref),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
);
-- A session may have several outcomes.
CREATE INDEX outcome_of_session ON outcome (tenant, session, id);

-- The link from an outcome to what it rests on, and the log of the move it made, in one row.
-- factor NULL asks for the table's multiplier. credit and result feed evidence and default to nothing: an outcome the
-- application did not seal moves confidence, never evidence. effective_factor follows revisions; the rest stays as it happened.
CREATE TABLE outcome_cause (
  tenant bigint NOT NULL,
  outcome bigint NOT NULL,
  version bigint NOT NULL,
  how text NOT NULL DEFAULT 'foreign' CHECK (how IN ('used', 'served', 'attempt', 'foreign')),
  factor double precision CHECK (factor IS NULL OR factor BETWEEN 0 AND 2),
  credit double precision NOT NULL DEFAULT 0 CHECK (credit BETWEEN 0 AND 1),
  result smallint CHECK (result IN (0, 1)),
  effective_factor double precision,
  entry bigint,
  claim bytea,
  n bigint,
  before double precision CHECK (before IS NULL OR before BETWEEN 0 AND 1),
  after double precision CHECK (after IS NULL OR after BETWEEN 0 AND 1),
  PRIMARY KEY (tenant, outcome, version, how)
);
GRANT UPDATE (credit, result, effective_factor) ON outcome_cause TO herdbook_app;
-- A claim's moves in order of arrival: what `why` prints and a revision folds again.
CREATE UNIQUE INDEX outcome_cause_of_claim ON outcome_cause (tenant, entry, claim, n) WHERE n IS NOT NULL;

-- Somebody other than the box vouches: the exit code its host saw, or a result.
CREATE TABLE attestation (
  tenant bigint NOT NULL,
  outcome bigint NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  identity text NOT NULL,
  channel text NOT NULL,
  exit_code bigint,
  result text NOT NULL CHECK (result IN ('success', 'failure')),
  note text,
  at bigint NOT NULL,
  seal bytea,
  PRIMARY KEY (tenant, outcome, n),
  FOREIGN KEY (tenant, outcome) REFERENCES outcome (tenant, id)
);

-- An outcome was something else after all. Appended; clamping forbids taking a move back, so confidence is folded again.
CREATE TABLE revision (
  tenant bigint NOT NULL,
  outcome bigint NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  type text NOT NULL CHECK (type IN ('success', 'minor_failure', 'failure', 'critical_failure')),
  why text,
  identity text NOT NULL,
  at bigint NOT NULL,
  seal bytea,
  arrived bigint GENERATED ALWAYS AS IDENTITY, -- in which order they came, whatever the clock said
  PRIMARY KEY (tenant, outcome, n),
  FOREIGN KEY (tenant, outcome) REFERENCES outcome (tenant, id)
);

-- What a revision did to each claim it touched: the other half of the move log.
CREATE TABLE refold (
  tenant bigint NOT NULL,
  outcome bigint NOT NULL,
  n bigint NOT NULL,
  entry bigint NOT NULL,
  claim bytea NOT NULL,
  moves bigint NOT NULL, -- how many moves the claim had by then: the place in its log
  before double precision NOT NULL,
  after double precision NOT NULL,
  PRIMARY KEY (tenant, entry, claim, outcome, n)
);

-- Unattested outcomes count in evidence once per (identity, entry, day).
CREATE TABLE counted (
  tenant bigint NOT NULL,
  identity text COLLATE "C" NOT NULL,
  day bigint NOT NULL,
  entry bigint NOT NULL,
  PRIMARY KEY (tenant, identity, day, entry)
);

-- The sealed chain of a session: a link for each outcome, attestation and revision, over all that the run had said by then.
CREATE TABLE trace (
  tenant bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  event text NOT NULL,
  digest bytea NOT NULL,
  seal bytea,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, session, n)
);

-- The first answer to every other request id and outcome ref, kept for ever, so that a retry gets it again.
CREATE TABLE request (
  tenant bigint NOT NULL,
  verb text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  answer text NOT NULL CHECK (answer::json IS NOT NULL),
  PRIMARY KEY (tenant, verb, id)
);

-- Boxes: the row is written before the box, and its lease says until when its host is believed alive.
CREATE TABLE box (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL,
  provider text NOT NULL,
  isolation text NOT NULL CHECK (isolation IN ('microvm', 'userspace-kernel', 'container', 'namespace', 'process')),
  label text NOT NULL,
  owner text NOT NULL,
  opened_at bigint NOT NULL,
  lease_until bigint NOT NULL,
  closed_at bigint,
  detail text,
  PRIMARY KEY (tenant, id)
) WITH (fillfactor = 80);
GRANT UPDATE (lease_until, closed_at, detail) ON box TO herdbook_app;

-- What search without a scope knows of each entry: which version, and its tokens, so that they can be taken back.
CREATE TABLE text_entry (
  tenant bigint NOT NULL,
  entry bigint NOT NULL,
  version bigint NOT NULL,
  tokens text NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, entry)
);
GRANT UPDATE, DELETE ON text_entry TO herdbook_app;
-- Which entries hold a token. A B-tree and equality, since a full-text operator could not use its index under row security.
CREATE TABLE text_token (
  tenant bigint NOT NULL,
  token text COLLATE "C" NOT NULL,
  entry bigint NOT NULL,
  PRIMARY KEY (tenant, token, entry)
);
GRANT UPDATE, DELETE ON text_token TO herdbook_app;
