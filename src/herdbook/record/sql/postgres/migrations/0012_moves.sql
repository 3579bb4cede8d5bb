-- A move may be told whole: what a claim stood at, its factor, and where that leaves it. It is still what moves the claim here, and it is
-- refused unless it is exactly the next move of that claim. A bare row, as plain SQL writes it, is completed as before.
DROP TRIGGER outcome_cause_moves_trust_v1 ON outcome_cause;
CREATE TRIGGER outcome_cause_moves_trust_v1 BEFORE INSERT ON outcome_cause FOR EACH ROW
  WHEN (NEW.n IS NULL) EXECUTE FUNCTION outcome_cause_moves_trust_v1();

-- Refused as a clash, after which the work is done again: between looking and telling, plain SQL may have moved the same claim.
-- Whether the cause is there already is asked once the claim is locked: with ON CONFLICT DO NOTHING this runs for rows that are not stored.
CREATE FUNCTION outcome_cause_moves_as_told_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
DECLARE
  about record;
BEGIN
  SELECT v.path, o.type, o.ref, o.at INTO about FROM version v CROSS JOIN outcome o
  WHERE v.tenant = NEW.tenant AND v.id = NEW.version AND v.entry = NEW.entry AND v.claim = NEW.claim
    AND o.tenant = NEW.tenant AND o.id = NEW.outcome;
  UPDATE claim c SET
    confidence = NEW.after, moves = NEW.n, held = c.held + NEW.credit * NEW.result, failed = c.failed + NEW.credit * (1 - NEW.result),
    failed_since = CASE NEW.result WHEN 1 THEN c.failed_since * (1 - NEW.credit) ELSE c.failed_since + NEW.credit END,
    last_type = about.type, last_ref = about.ref, last_at = about.at
  WHERE c.tenant = NEW.tenant AND c.path = about.path AND c.entry = NEW.entry AND c.digest = NEW.claim
    AND c.moves = NEW.n - 1 AND c.confidence = NEW.before AND NEW.after = greatest(0.0, least(1.0, NEW.before * NEW.factor))
    AND NEW.effective_factor = NEW.factor AND NEW.result IS NOT NULL;
  IF NOT FOUND OR EXISTS (SELECT 1 FROM outcome_cause x WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome
                          AND x.version = NEW.version AND x.how = NEW.how) THEN
    RAISE EXCEPTION 'herdbook:append_only' USING ERRCODE = '40001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER outcome_cause_moves_as_told_v1 BEFORE INSERT ON outcome_cause FOR EACH ROW
  WHEN (NEW.n IS NOT NULL) EXECUTE FUNCTION outcome_cause_moves_as_told_v1();
