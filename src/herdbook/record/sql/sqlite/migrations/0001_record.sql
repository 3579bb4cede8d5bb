-- The record, first form. Every key, unique and foreign key begins with tenant; ids come from the application.
-- What must hold whatever writes (version order, append-only, trust moves) is a constraint or a trigger here.

-- Whose rows they are; one file is one trust domain, and the columns are those of a server's record.
CREATE TABLE tenant (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Small facts about the file itself: the seal check, how far the reads journal and the text index have come.
CREATE TABLE meta (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Paths are stored once. outcomes and successes are the entity's own base rate, which evidence is measured against.
CREATE TABLE path (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id INTEGER NOT NULL,
  path TEXT NOT NULL CHECK (length(path) BETWEEN 1 AND 512),
  outcomes INTEGER NOT NULL DEFAULT 0 CHECK (outcomes >= 0),
  successes INTEGER NOT NULL DEFAULT 0 CHECK (successes BETWEEN 0 AND outcomes),
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, path)
) STRICT, WITHOUT ROWID;

-- The head of an entry: its current version, and the last one whose claim stood. One row serialises the writers of one key.
-- Clustered by path, so that a briefing reads one range; everything else reaches it through a version's path and key.
CREATE TABLE entry (
  tenant INTEGER NOT NULL,
  path INTEGER NOT NULL,
  key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 256),
  id INTEGER NOT NULL,
  number INTEGER NOT NULL CHECK (number >= 1),
  version INTEGER NOT NULL,
  claim BLOB NOT NULL,
  standing_version INTEGER,
  PRIMARY KEY (tenant, path, key),
  FOREIGN KEY (tenant, path) REFERENCES path (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER entry_moves_one_version_v1 BEFORE UPDATE OF number ON entry
WHEN NEW.number NOT IN (OLD.number, OLD.number + 1) BEGIN
  SELECT RAISE(ABORT, 'herdbook:version_gap');
END;

-- What is known, one row a version, never changed. The id is SQLite's own row number, one tree less to write at every commit
-- (each dirty page costs); it grows in the order of commits, which is how the text index follows.
CREATE TABLE version (
  id INTEGER NOT NULL PRIMARY KEY,
  tenant INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  path INTEGER NOT NULL,
  key TEXT NOT NULL,
  number INTEGER NOT NULL CHECK (number >= 1),
  claim BLOB NOT NULL,
  value TEXT NOT NULL CHECK (json_valid(value)),
  why TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('fact', 'belief', 'experience')),
  worked INTEGER CHECK (worked IN (0, 1)),
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  applies_when TEXT,
  expires_at INTEGER,
  links TEXT CHECK (links IS NULL OR json_valid(links)),
  origin TEXT NOT NULL CHECK (origin IN ('principal', 'operator', 'agent', 'external')),
  author TEXT NOT NULL,
  identity TEXT NOT NULL,
  session TEXT,
  box TEXT,
  at INTEGER NOT NULL CHECK (at >= 0),
  request TEXT NOT NULL,
  body BLOB NOT NULL, -- the digest of the request, so that its id under another body is refused
  answered TEXT NOT NULL CHECK (json_valid(answered)), -- the first answer, so that a retry gets it again
  seal BLOB,
  -- A request id makes one version, for ever.
  UNIQUE (tenant, request),
  -- Versions of an entry are 1..n; the trigger below refuses a gap, this a duplicate.
  UNIQUE (tenant, entry, number),
  FOREIGN KEY (tenant, path, key) REFERENCES entry (tenant, path, key)
) STRICT;
-- A session's own writes, which its outcome can make stand.
CREATE INDEX version_of_session ON version (tenant, session) WHERE session IS NOT NULL;

CREATE TRIGGER version_without_gap_v1 BEFORE INSERT ON version BEGIN
  SELECT RAISE(ABORT, 'herdbook:version_gap')
  WHERE NEW.number <> 1 + coalesce((SELECT max(number) FROM version WHERE tenant = NEW.tenant AND entry = NEW.entry), 0);
END;
CREATE TRIGGER version_is_immutable_v1 BEFORE UPDATE ON version BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER version_is_kept_v1 BEFORE DELETE ON version BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- What versions assert; trust belongs here. Many versions can state one claim, which its content's digest names within the entry.
-- Clustered by path like the entries: a briefing reads the trust of a path, and an outcome writes it, in neighbouring pages.
CREATE TABLE claim (
  tenant INTEGER NOT NULL,
  path INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 16),
  initial REAL NOT NULL CHECK (initial BETWEEN 0 AND 1),
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  moves INTEGER NOT NULL DEFAULT 0 CHECK (moves >= 0),
  recalls INTEGER NOT NULL DEFAULT 0 CHECK (recalls >= 0),
  observed INTEGER NOT NULL DEFAULT 0 CHECK (observed >= 0),
  corroborated INTEGER NOT NULL DEFAULT 0 CHECK (corroborated >= 0),
  held REAL NOT NULL DEFAULT 0,
  failed REAL NOT NULL DEFAULT 0,
  failed_since REAL NOT NULL DEFAULT 0,
  affirmed INTEGER NOT NULL DEFAULT 0 CHECK (affirmed >= 0),
  affirmed_at INTEGER,
  last_type TEXT,
  last_ref TEXT,
  last_at INTEGER,
  PRIMARY KEY (tenant, path, entry, digest)
) STRICT, WITHOUT ROWID;

-- One run of one agent in one box.
CREATE TABLE session (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  identity TEXT NOT NULL,
  channel TEXT NOT NULL,
  box TEXT,
  entity TEXT,
  task TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  PRIMARY KEY (tenant, id)
) STRICT;

-- Exposures: what a session was served or had withheld, folded in from the reads journal. A withheld one is never a cause.
CREATE TABLE read (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  how TEXT NOT NULL CHECK (how IN ('briefing', 'read', 'search')),
  served INTEGER NOT NULL CHECK (served IN (0, 1)),
  probability REAL NOT NULL CHECK (probability > 0 AND probability <= 1),
  at INTEGER NOT NULL,
  folded INTEGER NOT NULL, -- when it came into the record, in row ids: what a sealed trace had seen
  PRIMARY KEY (tenant, session, id)
) STRICT, WITHOUT ROWID;

-- A read lengthens the shown half-life of what was served; here, so that folding the same journal line twice counts once.
CREATE TRIGGER read_is_recalled_v1 AFTER INSERT ON read WHEN NEW.served = 1 BEGIN
  UPDATE claim SET recalls = recalls + 1
  WHERE (tenant, path, entry, digest) = (
    SELECT tenant, path, entry, claim FROM version WHERE id = NEW.version AND tenant = NEW.tenant);
END;

-- Tool calls as they happened, in order within the session.
CREATE TABLE action (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  tool TEXT NOT NULL,
  args TEXT NOT NULL CHECK (json_valid(args)),
  result TEXT NOT NULL CHECK (json_valid(result)),
  ok INTEGER CHECK (ok IN (0, 1)),
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, session, n),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
) STRICT;

-- What the agent was given: prompts, files, messages.
CREATE TABLE context (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, session, n),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
) STRICT;

-- Tries within a run. A failed one charges what it used when the outcome comes.
CREATE TABLE attempt (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  result TEXT NOT NULL CHECK (result IN ('success', 'failure')),
  used TEXT NOT NULL CHECK (json_valid(used)),
  note TEXT,
  at INTEGER NOT NULL,
  charged INTEGER NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
  PRIMARY KEY (tenant, session, n),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
) STRICT;

-- What each type of outcome does to confidence: per tenant, and per entity path and what lies below it. The nearest path wins.
CREATE TABLE multiplier (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  path TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('success', 'minor_failure', 'failure', 'critical_failure')),
  factor REAL NOT NULL CHECK (factor > 0 AND factor <= 2),
  PRIMARY KEY (tenant, path, type)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tenant_has_multipliers_v1 AFTER INSERT ON tenant BEGIN
  INSERT INTO multiplier (tenant, path, type, factor) VALUES (NEW.id, '', 'success', 1.03), (NEW.id, '', 'minor_failure', 0.92),
    (NEW.id, '', 'failure', 0.90), (NEW.id, '', 'critical_failure', 0.85);
END;
INSERT INTO tenant (id, name) VALUES (1, 'default');

-- What happened. The row is never changed: attestations and revisions are rows of their own.
CREATE TABLE outcome (
  id INTEGER NOT NULL PRIMARY KEY,
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  session TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('success', 'minor_failure', 'failure', 'critical_failure')),
  identity TEXT NOT NULL,
  box TEXT,
  task_input TEXT,
  observed TEXT CHECK (observed IS NULL OR json_valid(observed)),
  artifacts TEXT CHECK (artifacts IS NULL OR json_valid(artifacts)),
  verified_by TEXT,
  at INTEGER NOT NULL,
  seal BLOB,
  UNIQUE (tenant, ref),
  FOREIGN KEY (tenant, session) REFERENCES session (tenant, id)
) STRICT;
-- A session may have several outcomes.
CREATE INDEX outcome_of_session ON outcome (tenant, session);
CREATE TRIGGER outcome_is_immutable_v1 BEFORE UPDATE ON outcome BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER outcome_is_kept_v1 BEFORE DELETE ON outcome BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- The link from an outcome to what it rests on, and the log of the move it made, in one row.
-- factor NULL asks for the table's multiplier. credit and result feed evidence and default to nothing: an outcome the
-- application did not seal moves confidence, never evidence. effective_factor follows revisions; the rest stays as it happened.
CREATE TABLE outcome_cause (
  tenant INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  version INTEGER NOT NULL,
  how TEXT NOT NULL DEFAULT 'foreign' CHECK (how IN ('used', 'served', 'attempt', 'foreign')),
  factor REAL CHECK (factor IS NULL OR factor BETWEEN 0 AND 2),
  credit REAL NOT NULL DEFAULT 0 CHECK (credit BETWEEN 0 AND 1),
  result INTEGER CHECK (result IN (0, 1)),
  effective_factor REAL,
  entry INTEGER,
  claim BLOB,
  n INTEGER,
  before REAL CHECK (before IS NULL OR before BETWEEN 0 AND 1),
  after REAL CHECK (after IS NULL OR after BETWEEN 0 AND 1),
  PRIMARY KEY (tenant, outcome, version, how)
) STRICT, WITHOUT ROWID;
-- A claim's moves in order of arrival: what `why` prints and a revision folds again. Filled by the trigger, so only once complete.
CREATE UNIQUE INDEX outcome_cause_of_claim ON outcome_cause (tenant, entry, claim, n) WHERE n IS NOT NULL;

CREATE TRIGGER outcome_cause_moves_trust_v1 AFTER INSERT ON outcome_cause BEGIN
  UPDATE outcome_cause
  SET (entry, claim, n, before, factor, effective_factor, result, after) = (
    SELECT c.entry, c.digest, c.moves + 1, c.confidence, f.factor, f.factor,
           coalesce(NEW.result, (SELECT type = 'success' FROM outcome WHERE id = NEW.outcome)),
           max(0.0, min(1.0, c.confidence * f.factor))
    FROM (SELECT coalesce(NEW.factor, (
      SELECT m.factor FROM multiplier m, path p
      WHERE m.tenant = NEW.tenant AND m.type = (SELECT type FROM outcome WHERE id = NEW.outcome)
        AND p.tenant = NEW.tenant AND p.id = (SELECT path FROM version WHERE id = NEW.version)
        AND (m.path = '' OR m.path = p.path OR substr(p.path, 1, length(m.path) + 1) = m.path || '/')
      ORDER BY length(m.path) DESC LIMIT 1)) AS factor) f
    CROSS JOIN version v ON v.id = NEW.version AND v.tenant = NEW.tenant
    CROSS JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim)
  WHERE tenant = NEW.tenant AND outcome = NEW.outcome AND version = NEW.version AND how = NEW.how;
  SELECT CASE WHEN x.claim IS NULL THEN RAISE(ABORT, 'herdbook:unknown_version')
              WHEN NOT EXISTS (SELECT 1 FROM outcome WHERE id = NEW.outcome AND tenant = NEW.tenant)
                THEN RAISE(ABORT, 'herdbook:unknown_outcome')
              WHEN x.factor IS NULL THEN RAISE(ABORT, 'herdbook:no_multiplier') END
  FROM outcome_cause x
  WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.version = NEW.version AND x.how = NEW.how;
  UPDATE claim
  SET (confidence, moves, held, failed, failed_since, last_type, last_ref, last_at) = (
    SELECT x.after, claim.moves + 1, claim.held + x.credit * x.result, claim.failed + x.credit * (1 - x.result),
           CASE x.result WHEN 1 THEN claim.failed_since * (1 - x.credit) ELSE claim.failed_since + x.credit END,
           o.type, o.ref, o.at
    FROM outcome_cause x CROSS JOIN outcome o ON o.id = NEW.outcome
    WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.version = NEW.version AND x.how = NEW.how)
  WHERE (tenant, path, entry, digest) = (SELECT tenant, path, entry, claim FROM version WHERE id = NEW.version);
END;

CREATE TRIGGER outcome_cause_is_a_log_v1 BEFORE UPDATE OF tenant, outcome, version, how, entry, claim, n, before, after, factor ON outcome_cause
WHEN OLD.n IS NOT NULL BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER outcome_cause_is_kept_v1 BEFORE DELETE ON outcome_cause BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- Somebody other than the box vouches: the exit code its host saw, or a result.
CREATE TABLE attestation (
  tenant INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  identity TEXT NOT NULL,
  channel TEXT NOT NULL,
  exit_code INTEGER,
  result TEXT NOT NULL CHECK (result IN ('success', 'failure')),
  note TEXT,
  at INTEGER NOT NULL,
  seal BLOB,
  PRIMARY KEY (tenant, outcome, n),
  FOREIGN KEY (outcome) REFERENCES outcome (id)
) STRICT;

CREATE TRIGGER attestation_is_immutable_v1 BEFORE UPDATE ON attestation BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER attestation_is_kept_v1 BEFORE DELETE ON attestation BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- An outcome was something else after all. Appended; clamping forbids taking a move back, so confidence is folded again.
CREATE TABLE revision (
  tenant INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  type TEXT NOT NULL CHECK (type IN ('success', 'minor_failure', 'failure', 'critical_failure')),
  why TEXT,
  identity TEXT NOT NULL,
  at INTEGER NOT NULL,
  seal BLOB,
  PRIMARY KEY (tenant, outcome, n),
  FOREIGN KEY (outcome) REFERENCES outcome (id)
) STRICT;
CREATE TRIGGER revision_is_immutable_v1 BEFORE UPDATE ON revision BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER revision_is_kept_v1 BEFORE DELETE ON revision BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- What a revision did to each claim it touched: the other half of the move log.
CREATE TABLE refold (
  tenant INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  n INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  claim BLOB NOT NULL,
  moves INTEGER NOT NULL, -- how many moves the claim had by then: the place in its log
  before REAL NOT NULL,
  after REAL NOT NULL,
  PRIMARY KEY (tenant, entry, claim, outcome, n)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER revision_refolds_trust_v1 AFTER INSERT ON revision BEGIN
  INSERT INTO refold (tenant, outcome, n, entry, claim, moves, before, after)
  SELECT DISTINCT NEW.tenant, NEW.outcome, NEW.n, c.entry, c.digest, c.moves, c.confidence, c.confidence
  FROM outcome_cause x CROSS JOIN version v ON v.id = x.version
  CROSS JOIN claim c ON c.tenant = x.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim
  WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.how <> 'attempt';
  UPDATE outcome_cause SET result = (NEW.type = 'success'), effective_factor = (
    SELECT m.factor FROM multiplier m, path p
    WHERE m.tenant = NEW.tenant AND m.type = NEW.type
      AND p.tenant = NEW.tenant AND p.id = (SELECT path FROM version WHERE id = outcome_cause.version)
      AND (m.path = '' OR m.path = p.path OR substr(p.path, 1, length(m.path) + 1) = m.path || '/')
    ORDER BY length(m.path) DESC LIMIT 1)
  WHERE tenant = NEW.tenant AND outcome = NEW.outcome AND how <> 'attempt';
  UPDATE claim SET
    confidence = (WITH RECURSIVE f(n, x) AS (
        SELECT 0, claim.initial UNION ALL
        SELECT f.n + 1, max(0.0, min(1.0, f.x * c.effective_factor)) FROM f
        JOIN outcome_cause c ON c.tenant = claim.tenant AND c.entry = claim.entry AND c.claim = claim.digest AND c.n = f.n + 1)
      SELECT x FROM f ORDER BY n DESC LIMIT 1),
    failed_since = (WITH RECURSIVE f(n, x) AS (
        SELECT 0, 0.0 UNION ALL
        SELECT f.n + 1, CASE c.result WHEN 1 THEN f.x * (1 - c.credit) ELSE f.x + c.credit END FROM f
        JOIN outcome_cause c ON c.tenant = claim.tenant AND c.entry = claim.entry AND c.claim = claim.digest AND c.n = f.n + 1)
      SELECT x FROM f ORDER BY n DESC LIMIT 1),
    held = (SELECT sum(c.credit * c.result) FROM outcome_cause c
      WHERE c.tenant = claim.tenant AND c.entry = claim.entry AND c.claim = claim.digest AND c.n IS NOT NULL),
    failed = (SELECT sum(c.credit * (1 - c.result)) FROM outcome_cause c
      WHERE c.tenant = claim.tenant AND c.entry = claim.entry AND c.claim = claim.digest AND c.n IS NOT NULL),
    last_type = CASE last_ref WHEN (SELECT ref FROM outcome WHERE id = NEW.outcome) THEN NEW.type ELSE last_type END
  WHERE (tenant, path, entry, digest) IN (SELECT v.tenant, v.path, v.entry, v.claim
    FROM outcome_cause x CROSS JOIN version v ON v.id = x.version
    WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.how <> 'attempt');
  UPDATE refold SET after = (SELECT c.confidence FROM outcome_cause x CROSS JOIN version v ON v.id = x.version
    CROSS JOIN claim c ON c.tenant = v.tenant AND c.path = v.path AND c.entry = v.entry AND c.digest = v.claim
    WHERE x.tenant = refold.tenant AND x.outcome = refold.outcome AND x.entry = refold.entry AND x.claim = refold.claim LIMIT 1)
  WHERE (tenant, entry, claim, outcome, n) IN (SELECT DISTINCT x.tenant, x.entry, x.claim, NEW.outcome, NEW.n FROM outcome_cause x
    WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.how <> 'attempt');
END;

-- Unattested outcomes count in evidence once per (identity, entry, day).
CREATE TABLE counted (
  tenant INTEGER NOT NULL,
  identity TEXT NOT NULL,
  day INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  PRIMARY KEY (tenant, identity, day, entry)
) STRICT, WITHOUT ROWID;

-- The sealed chain of a session: a link for each outcome, attestation and revision, over all that the run had said by then.
CREATE TABLE trace (
  tenant INTEGER NOT NULL,
  session TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 1),
  event TEXT NOT NULL,
  digest BLOB NOT NULL,
  seal BLOB,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, session, n)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER trace_is_immutable_v1 BEFORE UPDATE ON trace BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER trace_is_kept_v1 BEFORE DELETE ON trace BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- The first answer to every other request id and outcome ref, kept for ever, so that a retry gets it again.
CREATE TABLE request (
  tenant INTEGER NOT NULL,
  verb TEXT NOT NULL,
  id TEXT NOT NULL,
  digest BLOB NOT NULL,
  answer TEXT NOT NULL CHECK (json_valid(answer)),
  PRIMARY KEY (tenant, verb, id)
) STRICT, WITHOUT ROWID;

-- Boxes: the row is written before the box, and its lease says until when its host is believed alive.
CREATE TABLE box (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL,
  provider TEXT NOT NULL,
  isolation TEXT NOT NULL CHECK (isolation IN ('microvm', 'userspace-kernel', 'container', 'namespace', 'process')),
  label TEXT NOT NULL,
  owner TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  closed_at INTEGER,
  detail TEXT,
  PRIMARY KEY (tenant, id)
) STRICT;

-- Full text over current versions, for search without a scope. Follows the record by the rowid of versions; rebuilt at will.
CREATE TABLE text_entry (
  id INTEGER NOT NULL PRIMARY KEY,
  tenant INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  version INTEGER NOT NULL,
  UNIQUE (tenant, entry)
) STRICT;
-- The tokens themselves, as the ranking code makes them.
CREATE VIRTUAL TABLE text_index USING fts5 (tokens, tokenize = 'unicode61 remove_diacritics 0');
