-- A row that moves trust costs one statement instead of three, and one that is read none: that was most of what an outcome took.
CREATE OR REPLACE FUNCTION outcome_cause_moves_as_told_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
BEGIN -- a cause that is there already moves nothing, also where ON CONFLICT DO NOTHING then passes the row over
  UPDATE claim c SET
    confidence = NEW.after, moves = NEW.n, held = c.held + NEW.credit * NEW.result, failed = c.failed + NEW.credit * (1 - NEW.result),
    failed_since = CASE NEW.result WHEN 1 THEN c.failed_since * (1 - NEW.credit) ELSE c.failed_since + NEW.credit END,
    last_type = about.type, last_ref = about.ref, last_at = about.at
  FROM (SELECT v.path, o.type, o.ref, o.at FROM version v CROSS JOIN outcome o
        WHERE v.tenant = NEW.tenant AND v.id = NEW.version AND v.entry = NEW.entry AND v.claim = NEW.claim
          AND o.tenant = NEW.tenant AND o.id = NEW.outcome OFFSET 0) about
  WHERE c.tenant = NEW.tenant AND c.path = about.path AND c.entry = NEW.entry AND c.digest = NEW.claim
    AND c.moves = NEW.n - 1 AND c.confidence = NEW.before AND NEW.after = greatest(0.0, least(1.0, NEW.before * NEW.factor))
    AND NEW.effective_factor = NEW.factor AND NEW.result IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM outcome_cause x WHERE x.tenant = NEW.tenant AND x.outcome = NEW.outcome
                    AND x.version = NEW.version AND x.how = NEW.how);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'herdbook:append_only' USING ERRCODE = '40001';
  END IF;
  RETURN NEW;
END $$;

-- What was read is counted by the statement that folds what was noted: one for all of them.
DROP TRIGGER read_is_recalled_v1 ON read;
DROP FUNCTION read_is_recalled_v1();
