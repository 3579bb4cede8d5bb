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

-- What must hold whatever writes. Every function is pinned to this schema, every trigger fires for every role and in every mode.
CREATE FUNCTION refuse_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'HB001';
END $$;

CREATE FUNCTION version_without_gap_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
BEGIN -- not max(number): for that the planner may walk all versions of an entry that has many more than most
  IF NEW.number <> 1 + coalesce((SELECT v.number FROM version v WHERE v.tenant = NEW.tenant AND v.entry = NEW.entry
                                 ORDER BY v.number DESC LIMIT 1), 0) THEN
    RAISE EXCEPTION 'herdbook:version_gap' USING ERRCODE = 'HB001';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION read_is_recalled_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
DECLARE
  of_version record;
BEGIN -- in two steps, so that no plan can begin at the claims
  SELECT v.path, v.entry, v.claim INTO of_version FROM version v WHERE v.tenant = NEW.tenant AND v.id = NEW.version;
  UPDATE claim c SET recalls = c.recalls + 1
  WHERE c.tenant = NEW.tenant AND c.path = of_version.path AND c.entry = of_version.entry AND c.digest = of_version.claim;
  RETURN NULL;
END $$;

CREATE FUNCTION tenant_has_multipliers_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
DECLARE
  before text := coalesce(current_setting('app.tenant', true), '');
BEGIN -- whoever makes a tenant acts for the server, which sees no tenant's rows; these are the new one's
  PERFORM set_config('app.tenant', NEW.id::text, true);
  INSERT INTO multiplier (tenant, path, type, factor) VALUES (NEW.id, '', 'success', 1.03), (NEW.id, '', 'minor_failure', 0.92),
    (NEW.id, '', 'failure', 0.90), (NEW.id, '', 'critical_failure', 0.85);
  PERFORM set_config('app.tenant', before, true);
  RETURN NULL;
END $$;

-- The multiplier of the nearest path: the entity's own, an ancestor's, or the tenant's default under the empty path.
CREATE FUNCTION nearest_factor_v1(whose bigint, path_id bigint, outcome_type text) RETURNS double precision
LANGUAGE sql STABLE SET search_path = herdbook, pg_temp AS $$
  SELECT m.factor FROM path p JOIN multiplier m ON m.tenant = whose AND m.type = outcome_type
    AND (m.path = '' OR m.path = p.path OR substr(p.path, 1, length(m.path) + 1) = m.path || '/')
  WHERE p.tenant = whose AND p.id = path_id ORDER BY length(m.path) DESC LIMIT 1
$$;

-- The claim is locked before anything is looked at, so that a cause that is there already, also one that another transaction has just
-- committed, moves nothing: with ON CONFLICT DO NOTHING this runs for rows that are then not stored.
CREATE FUNCTION outcome_cause_moves_trust_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
DECLARE
  of_version record;
  of_outcome record;
  of_claim record;
BEGIN
  IF NEW.n IS NOT NULL THEN
    RAISE EXCEPTION 'herdbook:append_only' USING ERRCODE = 'HB001';
  END IF;
  SELECT v.path, v.entry, v.claim INTO of_version FROM version v WHERE v.tenant = NEW.tenant AND v.id = NEW.version;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'herdbook:unknown_version' USING ERRCODE = 'HB001';
  END IF;
  SELECT o.type, o.ref, o.at INTO of_outcome FROM outcome o WHERE o.tenant = NEW.tenant AND o.id = NEW.outcome;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'herdbook:unknown_outcome' USING ERRCODE = 'HB001';
  END IF;
  IF NEW.factor IS NULL OR NEW.factor = 'NaN' THEN
    NEW.factor := nearest_factor_v1(NEW.tenant, of_version.path, of_outcome.type);
    IF NEW.factor IS NULL THEN
      RAISE EXCEPTION 'herdbook:no_multiplier' USING ERRCODE = 'HB001';
    END IF;
  END IF;
  SELECT c.confidence, c.moves INTO of_claim FROM claim c
  WHERE c.tenant = NEW.tenant AND c.path = of_version.path AND c.entry = of_version.entry AND c.digest = of_version.claim FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'herdbook:unknown_version' USING ERRCODE = 'HB001';
  END IF;
  IF EXISTS (SELECT 1 FROM outcome_cause x WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.version = NEW.version
             AND x.how = NEW.how) THEN
    RETURN NEW; -- which the primary key refuses
  END IF;
  NEW.entry := of_version.entry;
  NEW.claim := of_version.claim;
  NEW.n := of_claim.moves + 1;
  NEW.before := of_claim.confidence;
  NEW.effective_factor := NEW.factor;
  NEW.result := coalesce(NEW.result, (of_outcome.type = 'success')::int);
  NEW.after := greatest(0.0, least(1.0, of_claim.confidence * NEW.factor));
  UPDATE claim c SET
    confidence = NEW.after, moves = NEW.n, held = c.held + NEW.credit * NEW.result, failed = c.failed + NEW.credit * (1 - NEW.result),
    failed_since = CASE NEW.result WHEN 1 THEN c.failed_since * (1 - NEW.credit) ELSE c.failed_since + NEW.credit END,
    last_type = of_outcome.type, last_ref = of_outcome.ref, last_at = of_outcome.at
  WHERE c.tenant = NEW.tenant AND c.path = of_version.path AND c.entry = of_version.entry AND c.digest = of_version.claim;
  RETURN NEW;
END $$;

CREATE FUNCTION revision_refolds_trust_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
DECLARE
  touched record;
  of_claim record;
  cause record;
  folded double precision;
  held_sum double precision;
  failed_sum double precision;
  since double precision;
  same_ref text;
BEGIN
  SELECT o.ref INTO same_ref FROM outcome o WHERE o.tenant = NEW.tenant AND o.id = NEW.outcome;
  FOR touched IN
    SELECT DISTINCT v.path, v.entry, v.claim FROM outcome_cause x JOIN version v ON v.tenant = x.tenant AND v.id = x.version
    WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.how <> 'attempt' ORDER BY v.path, v.entry, v.claim
  LOOP
    SELECT c.initial, c.moves, c.confidence INTO of_claim FROM claim c
    WHERE c.tenant = NEW.tenant AND c.path = touched.path AND c.entry = touched.entry AND c.digest = touched.claim FOR UPDATE;
    UPDATE outcome_cause x SET result = (NEW.type = 'success')::int,
      effective_factor = nearest_factor_v1(NEW.tenant, touched.path, NEW.type)
    WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome AND x.entry = touched.entry AND x.claim = touched.claim
      AND x.how <> 'attempt';
    folded := of_claim.initial;
    held_sum := 0;
    failed_sum := 0;
    since := 0;
    FOR cause IN
      SELECT x.effective_factor, x.credit, x.result FROM outcome_cause x
      WHERE x.tenant = NEW.tenant AND x.entry = touched.entry AND x.claim = touched.claim AND x.n IS NOT NULL ORDER BY x.n
    LOOP
      IF cause.effective_factor IS NULL THEN
        RAISE EXCEPTION 'herdbook:no_multiplier' USING ERRCODE = 'HB001';
      END IF;
      folded := greatest(0.0, least(1.0, folded * cause.effective_factor));
      held_sum := held_sum + cause.credit * cause.result;
      failed_sum := failed_sum + cause.credit * (1 - cause.result);
      since := CASE cause.result WHEN 1 THEN since * (1 - cause.credit) ELSE since + cause.credit END;
    END LOOP;
    INSERT INTO refold (tenant, outcome, n, entry, claim, moves, before, after)
    VALUES (NEW.tenant, NEW.outcome, NEW.n, touched.entry, touched.claim, of_claim.moves, of_claim.confidence, folded);
    UPDATE claim c SET confidence = folded, held = held_sum, failed = failed_sum, failed_since = since,
      last_type = CASE WHEN c.last_ref = same_ref THEN NEW.type ELSE c.last_type END
    WHERE c.tenant = NEW.tenant AND c.path = touched.path AND c.entry = touched.entry AND c.digest = touched.claim;
  END LOOP;
  RETURN NULL;
END $$;

CREATE TRIGGER entry_moves_one_version_v1 BEFORE UPDATE OF number ON entry FOR EACH ROW
  WHEN (NEW.number NOT IN (OLD.number, OLD.number + 1)) EXECUTE FUNCTION refuse_v1('herdbook:version_gap');
CREATE TRIGGER version_without_gap_v1 BEFORE INSERT ON version FOR EACH ROW EXECUTE FUNCTION version_without_gap_v1();
CREATE TRIGGER version_is_immutable_v1 BEFORE UPDATE ON version FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER version_is_kept_v1 BEFORE DELETE ON version FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER read_is_recalled_v1 AFTER INSERT ON read FOR EACH ROW WHEN (NEW.served = 1) EXECUTE FUNCTION read_is_recalled_v1();
CREATE TRIGGER tenant_has_multipliers_v1 AFTER INSERT ON tenant FOR EACH ROW EXECUTE FUNCTION tenant_has_multipliers_v1();
CREATE TRIGGER outcome_is_immutable_v1 BEFORE UPDATE ON outcome FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER outcome_is_kept_v1 BEFORE DELETE ON outcome FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER outcome_cause_moves_trust_v1 BEFORE INSERT ON outcome_cause FOR EACH ROW EXECUTE FUNCTION outcome_cause_moves_trust_v1();
CREATE TRIGGER outcome_cause_is_a_log_v1 BEFORE UPDATE OF tenant, outcome, version, how, entry, claim, n, before, after, factor
  ON outcome_cause FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER outcome_cause_is_kept_v1 BEFORE DELETE ON outcome_cause FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER attestation_is_immutable_v1 BEFORE UPDATE ON attestation FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER attestation_is_kept_v1 BEFORE DELETE ON attestation FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER revision_is_immutable_v1 BEFORE UPDATE ON revision FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER revision_is_kept_v1 BEFORE DELETE ON revision FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER revision_refolds_trust_v1 AFTER INSERT ON revision FOR EACH ROW EXECUTE FUNCTION revision_refolds_trust_v1();
CREATE TRIGGER trace_is_immutable_v1 BEFORE UPDATE ON trace FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER trace_is_kept_v1 BEFORE DELETE ON trace FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

INSERT INTO tenant (id, name) VALUES (0, 'server'), (1, 'default');
