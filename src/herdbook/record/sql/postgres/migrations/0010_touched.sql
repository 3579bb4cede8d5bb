-- Which heads and claims have changed since somebody looked: what a process holds of a path grows by those, not by all of them.
-- A row is stamped with the transaction that changed it. What was not yet to be seen in a look has a transaction of at least the
-- oldest one that was running then, whoever wrote it.
ALTER TABLE entry ADD COLUMN touched bigint NOT NULL DEFAULT 0;
ALTER TABLE claim ADD COLUMN touched bigint NOT NULL DEFAULT 0;

CREATE FUNCTION is_touched_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
BEGIN
  NEW.touched := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;
CREATE TRIGGER entry_is_touched_v1 BEFORE INSERT OR UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION is_touched_v1();
CREATE TRIGGER claim_is_touched_v1 BEFORE INSERT OR UPDATE ON claim FOR EACH ROW EXECUTE FUNCTION is_touched_v1();
