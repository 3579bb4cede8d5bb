-- Which heads and claims have changed since somebody looked: what a process holds of a path grows by those, not by all of them.
-- `latest` only ever grows, and a row is stamped with what it was then. So whatever is committed after a look has a stamp of at
-- least what `latest` was at that look, whoever wrote it.
CREATE VIEW latest AS
SELECT max(coalesce((SELECT max(id) FROM version), 0), coalesce((SELECT max(id) FROM outcome), 0)) AS id;

ALTER TABLE entry ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
ALTER TABLE claim ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER entry_is_touched_v1 AFTER UPDATE ON entry WHEN NEW.touched <> (SELECT id FROM latest) BEGIN
  UPDATE entry SET touched = (SELECT id FROM latest) WHERE tenant = NEW.tenant AND path = NEW.path AND key = NEW.key;
END;
CREATE TRIGGER claim_is_touched_v1 AFTER UPDATE ON claim WHEN NEW.touched <> (SELECT id FROM latest) BEGIN
  UPDATE claim SET touched = (SELECT id FROM latest)
  WHERE tenant = NEW.tenant AND path = NEW.path AND entry = NEW.entry AND digest = NEW.digest;
END;
