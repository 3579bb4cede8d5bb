-- A move may be told whole: what a claim stood at, its factor, and where that leaves it. Worked out beside the transaction's other
-- questions, it costs half of what working it out here does; here it is still what moves the claim, and it is refused unless it is
-- exactly the next move of that claim. A bare row, as plain SQL writes it, is completed as before.
DROP TRIGGER outcome_cause_moves_trust_v1;
CREATE TRIGGER outcome_cause_moves_trust_v1 AFTER INSERT ON outcome_cause WHEN NEW.n IS NULL BEGIN
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

CREATE TRIGGER outcome_cause_moves_as_told_v1 AFTER INSERT ON outcome_cause WHEN NEW.n IS NOT NULL BEGIN
  UPDATE claim
  SET touched = (SELECT id FROM latest), confidence = NEW.after, moves = NEW.n, held = held + NEW.credit * NEW.result,
      failed = failed + NEW.credit * (1 - NEW.result),
      failed_since = CASE NEW.result WHEN 1 THEN failed_since * (1 - NEW.credit) ELSE failed_since + NEW.credit END,
      (last_type, last_ref, last_at) = (SELECT type, ref, at FROM outcome WHERE id = NEW.outcome)
  WHERE tenant = NEW.tenant AND entry = NEW.entry AND digest = NEW.claim
    AND path = (SELECT path FROM version WHERE id = NEW.version AND tenant = NEW.tenant AND entry = NEW.entry AND claim = NEW.claim)
    AND moves = NEW.n - 1 AND confidence = NEW.before AND NEW.after = max(0.0, min(1.0, NEW.before * NEW.factor))
    AND NEW.effective_factor = NEW.factor AND NEW.result IS NOT NULL
    AND EXISTS (SELECT 1 FROM outcome WHERE id = NEW.outcome AND tenant = NEW.tenant);
  SELECT RAISE(ABORT, 'herdbook:append_only') WHERE changes() = 0;
END;

-- A statement that stamps what it changes saves the second change, which was half of what an outcome costs; others are stamped as before.
DROP TRIGGER entry_is_touched_v1;
DROP TRIGGER claim_is_touched_v1;
DROP TRIGGER read_is_recalled_v1;
CREATE TRIGGER entry_is_touched_v1 AFTER UPDATE ON entry
WHEN NEW.touched = OLD.touched AND NEW.touched <> (SELECT id FROM latest) BEGIN
  UPDATE entry SET touched = (SELECT id FROM latest) WHERE tenant = NEW.tenant AND path = NEW.path AND key = NEW.key;
END;
CREATE TRIGGER claim_is_touched_v1 AFTER UPDATE ON claim
WHEN NEW.touched = OLD.touched AND NEW.touched <> (SELECT id FROM latest) BEGIN
  UPDATE claim SET touched = (SELECT id FROM latest)
  WHERE tenant = NEW.tenant AND path = NEW.path AND entry = NEW.entry AND digest = NEW.digest;
END;
CREATE TRIGGER read_is_recalled_v1 AFTER INSERT ON read WHEN NEW.served = 1 BEGIN
  UPDATE claim SET recalls = recalls + 1, touched = (SELECT id FROM latest)
  WHERE (tenant, path, entry, digest) = (
    SELECT tenant, path, entry, claim FROM version WHERE id = NEW.version AND tenant = NEW.tenant);
END;
