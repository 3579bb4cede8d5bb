-- Run once after the migrations on a cluster of Citus or its kin, where row triggers stay within one tenant's shard, as these do.
SET LOCAL citus.enable_unsafe_triggers = on;
SET LOCAL search_path = herdbook, pg_temp;
SELECT create_reference_table('herdbook.meta');
SELECT create_reference_table('herdbook.migration');
SELECT create_distributed_table('herdbook.tenant', 'id');
DO $$
DECLARE
  name text;
BEGIN -- parents before their children
  FOR name IN
    WITH RECURSIVE depth AS (
      SELECT c.oid, c.relname, 0 AS n FROM pg_class c WHERE c.relnamespace = 'herdbook'::regnamespace AND c.relkind = 'r'
      UNION ALL
      SELECT c.oid, c.relname, d.n + 1 FROM depth d
      JOIN pg_constraint k ON k.confrelid = d.oid AND k.contype = 'f' JOIN pg_class c ON c.oid = k.conrelid
    )
    SELECT relname FROM depth WHERE relname NOT IN ('meta', 'migration', 'tenant') GROUP BY relname ORDER BY max(n), relname
  LOOP
    PERFORM create_distributed_table(format('herdbook.%I', name), 'tenant', colocate_with => 'herdbook.tenant');
  END LOOP;
END $$;
