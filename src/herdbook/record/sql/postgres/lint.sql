-- What would let one tenant see or block another, as the catalogue has it. One row a mistake: its kind, where it is.
WITH ours AS (
  SELECT c.oid, c.relname, c.relkind, c.relowner, c.relrowsecurity, c.relforcerowsecurity, c.reloptions
  FROM pg_class c WHERE c.relnamespace = 'herdbook'::regnamespace
), tables AS (
  SELECT o.*, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = o.oid AND a.attname = 'tenant' AND NOT a.attisdropped) AS of_tenants
  FROM ours o WHERE o.relkind IN ('r', 'p')
), keys AS (
  SELECT t.relname, i.relname AS key, a.attname AS first
  FROM tables t JOIN pg_index x ON x.indrelid = t.oid AND x.indisunique JOIN pg_class i ON i.oid = x.indexrelid
  LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
  WHERE t.relname NOT IN ('tenant', 'meta', 'migration')
), rights AS (
  SELECT t.relname, t.of_tenants, p.privilege_type
  FROM tables t JOIN information_schema.role_table_grants p
    ON p.table_schema = 'herdbook' AND p.table_name = t.relname AND p.grantee IN ('herdbook_app', 'PUBLIC')
)
SELECT 'row security is not forced' AS kind, relname::text AS place FROM tables WHERE NOT (relrowsecurity AND relforcerowsecurity)
UNION ALL
SELECT 'the table belongs to no tenant', relname FROM tables WHERE NOT of_tenants AND relname NOT IN ('tenant', 'meta', 'migration')
UNION ALL
SELECT 'the policy does not hold for reading and writing alike', t.relname FROM tables t
WHERE NOT EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = t.oid AND p.polname = 'of_tenant' AND p.polcmd = '*' AND p.polpermissive
  AND pg_get_expr(p.polqual, p.polrelid) = pg_get_expr(p.polwithcheck, p.polrelid)
  AND (NOT t.of_tenants OR pg_get_expr(p.polqual, p.polrelid) LIKE '(tenant = %app.tenant%'))
UNION ALL
SELECT 'another policy opens the table', t.relname FROM tables t JOIN pg_policy p ON p.polrelid = t.oid AND p.polname <> 'of_tenant'
UNION ALL
SELECT 'a unique key does not begin with the tenant', relname || '.' || key FROM keys WHERE first IS DISTINCT FROM 'tenant'
UNION ALL
SELECT 'a foreign key does not carry the tenant', t.relname || '.' || k.conname FROM tables t
JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype = 'f'
WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a, pg_attribute b WHERE a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
  AND b.attrelid = k.confrelid AND b.attnum = k.confkey[1] AND a.attname = 'tenant'
  AND b.attname = CASE WHEN k.confrelid = 'herdbook.tenant'::regclass THEN 'id' ELSE 'tenant' END)
UNION ALL
SELECT 'a view shows the rows of its owner', relname FROM ours
WHERE relkind = 'm' OR (relkind = 'v' AND NOT coalesce('security_invoker=true' = ANY (reloptions), false))
UNION ALL
SELECT 'a function acts with the rights of its owner', f.proname FROM pg_proc f
WHERE f.pronamespace = 'herdbook'::regnamespace AND f.prosecdef
UNION ALL
SELECT 'a function looks where its caller says', f.proname FROM pg_proc f
WHERE f.pronamespace = 'herdbook'::regnamespace
  AND NOT coalesce(array_to_string(f.proconfig, ' ') LIKE '%search_path=herdbook, pg_temp%', false)
UNION ALL
SELECT 'a trigger can be passed by', o.relname || '.' || t.tgname FROM ours o JOIN pg_trigger t ON t.tgrelid = o.oid
WHERE NOT t.tgisinternal AND t.tgenabled <> 'A'
UNION ALL
SELECT 'the app may ' || lower(privilege_type), relname FROM rights
WHERE privilege_type IN ('TRUNCATE', 'TRIGGER', 'REFERENCES') OR (relname = 'migration' AND privilege_type <> 'SELECT')
  OR (privilege_type IN ('UPDATE', 'DELETE') AND relname IN ('version', 'outcome', 'attestation', 'revision', 'trace', 'refold', 'read'))
UNION ALL
SELECT 'the app owns it', relname FROM ours WHERE relkind IN ('r', 'p', 'v', 'm') AND relowner = 'herdbook_app'::regrole
UNION ALL
SELECT 'the role is above row security', rolname FROM pg_roles
WHERE rolname IN ('herdbook_app', 'herdbook_owner') AND (rolsuper OR rolbypassrls OR (rolname = 'herdbook_app' AND rolcanlogin))
ORDER BY 1, 2;
