-- Run after every migration, as the owner: whatever has a tenant is seen and written by that tenant only, also by the owner itself.
-- The tenant is the one that the transaction was opened for; where none was set, nothing is seen.
DO $$
DECLARE
  name text;
  whose text;
BEGIN
  FOR name, whose IN
    SELECT c.relname, CASE WHEN c.relname = 'tenant' THEN 'id' WHEN a.attname IS NULL THEN NULL ELSE 'tenant' END
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
    WHERE c.relnamespace = 'herdbook'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname
  LOOP
    -- What is right already is left alone: each of these keeps everybody from the table until the migration is over.
    IF EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = format('herdbook.%I', name)::regclass
      AND NOT (relrowsecurity AND relforcerowsecurity)) THEN
      EXECUTE format('ALTER TABLE herdbook.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    END IF;
    IF EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = format('herdbook.%I', name)::regclass AND p.polname = 'of_tenant'
      AND p.polcmd = '*' AND p.polpermissive AND pg_get_expr(p.polqual, p.polrelid) = pg_get_expr(p.polwithcheck, p.polrelid)
      AND (whose IS NULL OR pg_get_expr(p.polqual, p.polrelid)
        LIKE CASE whose WHEN 'tenant' THEN '(tenant = %app.tenant%' ELSE '%app.tenant%' END))
    THEN
      whose := whose; -- as it should be
    ELSIF whose IS NULL THEN -- facts about the record itself
      EXECUTE format('DROP POLICY IF EXISTS of_tenant ON herdbook.%I', name);
      EXECUTE format('CREATE POLICY of_tenant ON herdbook.%I USING (true) WITH CHECK (true)', name);
    ELSIF name = 'tenant' THEN -- tenant 0 is the server itself: it sees who there is, and nothing of theirs
      DROP POLICY IF EXISTS of_tenant ON herdbook.tenant;
      EXECUTE 'CREATE POLICY of_tenant ON herdbook.tenant
        USING ((SELECT nullif(current_setting(''app.tenant'', true), '''')::bigint) IN (0, id))
        WITH CHECK ((SELECT nullif(current_setting(''app.tenant'', true), '''')::bigint) IN (0, id))';
    ELSE
      EXECUTE format('DROP POLICY IF EXISTS of_tenant ON herdbook.%I', name);
      EXECUTE format('CREATE POLICY of_tenant ON herdbook.%I USING (%I = (SELECT nullif(current_setting(''app.tenant'', true), '''')::bigint))
        WITH CHECK (%I = (SELECT nullif(current_setting(''app.tenant'', true), '''')::bigint))', name, whose, whose);
    END IF;
    IF name = 'migration' THEN
      EXECUTE format('GRANT SELECT ON herdbook.%I TO herdbook_app', name);
    ELSE
      EXECUTE format('GRANT SELECT, INSERT ON herdbook.%I TO herdbook_app', name);
    END IF;
  END LOOP;
  -- Every trigger fires for every role, also in a session that replicates.
  FOR name, whose IN
    SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'herdbook'::regnamespace AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'A'
  LOOP
    EXECUTE format('ALTER TABLE herdbook.%I ENABLE ALWAYS TRIGGER %I', name, whose);
  END LOOP;
END $$;
