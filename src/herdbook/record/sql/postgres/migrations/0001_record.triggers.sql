
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
