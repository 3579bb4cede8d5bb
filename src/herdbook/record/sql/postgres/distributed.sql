-- Run after the migrations on a cluster of Citus or its kin, where row triggers stay within one tenant's shard, as these do: they ask
-- for rows of NEW.tenant alone. Run again, it spreads what has come since. The setting has to be on at every node, since shards that
-- are made or moved later get their triggers there.
SET LOCAL citus.enable_unsafe_triggers = on;
SET LOCAL search_path = herdbook, pg_temp;
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['meta', 'migration'] LOOP -- facts about the record itself
    IF NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = format('herdbook.%I', name)::regclass) THEN
      PERFORM create_reference_table(format('herdbook.%I', name));
    END IF;
  END LOOP;
  IF NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'herdbook.tenant'::regclass) THEN
    PERFORM create_distributed_table('herdbook.tenant', 'id');
  END IF;
  FOR name IN -- parents before their children
    WITH RECURSIVE depth AS (
      SELECT c.oid, c.relname, 0 AS n FROM pg_class c WHERE c.relnamespace = 'herdbook'::regnamespace AND c.relkind = 'r'
      UNION ALL
      SELECT c.oid, c.relname, d.n + 1 FROM depth d
      JOIN pg_constraint k ON k.confrelid = d.oid AND k.contype = 'f' JOIN pg_class c ON c.oid = k.conrelid
    )
    SELECT relname FROM depth WHERE oid NOT IN (SELECT logicalrelid FROM pg_dist_partition) GROUP BY relname ORDER BY max(n), relname
  LOOP
    PERFORM create_distributed_table(format('herdbook.%I', name), 'tenant', colocate_with => 'herdbook.tenant');
  END LOOP;
END $$;
