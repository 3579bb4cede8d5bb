-- Run first, by somebody who may create roles and schemas in this database. Nobody logs in as these two: the owner is who migrations
-- run as, the app is what a server may do. Give the server a login of its own: CREATE ROLE myserver LOGIN IN ROLE herdbook_app.
DO $$
BEGIN
  PERFORM pg_advisory_xact_lock(7523094288207667809); -- roles belong to the whole server: two databases may be made at once
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'herdbook_owner') THEN
    CREATE ROLE herdbook_owner NOLOGIN NOINHERIT NOBYPASSRLS;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'herdbook_app') THEN
    CREATE ROLE herdbook_app NOLOGIN NOBYPASSRLS;
  END IF;
  IF NOT pg_has_role(current_user, 'herdbook_owner', 'MEMBER') THEN
    EXECUTE format('GRANT herdbook_owner TO %I', current_user);
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'herdbook') THEN
    CREATE SCHEMA herdbook AUTHORIZATION herdbook_owner;
    GRANT USAGE ON SCHEMA herdbook TO herdbook_app;
    SET LOCAL ROLE herdbook_owner;
    -- Which migrations were applied. The owner's; a server only looks.
    CREATE TABLE herdbook.migration (
      number bigint NOT NULL PRIMARY KEY,
      name text NOT NULL,
      at timestamptz NOT NULL DEFAULT now()
    );
    GRANT SELECT ON herdbook.migration TO herdbook_app;
  END IF;
END $$;
