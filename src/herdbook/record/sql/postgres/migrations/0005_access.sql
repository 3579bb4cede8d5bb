-- Access keys: what a credential may do. The key itself is shown once and not here; its digest is, and the row is sealed.
CREATE TABLE access_key (
  tenant bigint NOT NULL REFERENCES tenant (id),
  id text COLLATE "C" NOT NULL CHECK (length(id) BETWEEN 1 AND 64),
  name text COLLATE "C" NOT NULL,
  digest bytea NOT NULL CHECK (length(digest) = 32),
  identity text NOT NULL,
  role text NOT NULL CHECK (role IN ('reader', 'writer', 'box', 'host', 'watcher', 'admin', 'operator')),
  attest smallint NOT NULL CHECK (attest IN (0, 1)),
  verbs text CHECK (verbs IS NULL OR verbs::json IS NOT NULL), -- only these of the role's; NULL is all of them
  reach text CHECK (reach IS NULL OR reach::json IS NOT NULL), -- entity-path patterns; NULL is everything
  connections text NOT NULL CHECK (connections::json IS NOT NULL),
  rate_minute bigint CHECK (rate_minute > 0),
  quota_day bigint CHECK (quota_day > 0),
  created_at bigint NOT NULL,
  created_by text NOT NULL,
  ends_at bigint, -- when it stops being good: its expiry, or the moment it was revoked; never moved further away
  seal bytea NOT NULL, -- over everything but the end
  end_seal bytea NOT NULL,
  PRIMARY KEY (tenant, id)
);
GRANT UPDATE (ends_at, end_seal) ON access_key TO herdbook_app;
-- By the name people use, and to see whether a name is taken.
CREATE INDEX access_key_of_name ON access_key (tenant, name);

CREATE TRIGGER access_key_only_ends_v1 BEFORE UPDATE ON access_key FOR EACH ROW
  WHEN (NEW.ends_at IS NULL OR NEW.ends_at > OLD.ends_at
    OR (NEW.tenant, NEW.id, NEW.name, NEW.digest, NEW.identity, NEW.role, NEW.attest, NEW.verbs, NEW.reach, NEW.connections,
        NEW.rate_minute, NEW.quota_day, NEW.created_at, NEW.created_by, NEW.seal)
      IS DISTINCT FROM (OLD.tenant, OLD.id, OLD.name, OLD.digest, OLD.identity, OLD.role, OLD.attest, OLD.verbs, OLD.reach,
        OLD.connections, OLD.rate_minute, OLD.quota_day, OLD.created_at, OLD.created_by, OLD.seal))
  EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER access_key_is_kept_v1 BEFORE DELETE ON access_key FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

-- What a tenant as a whole may ask for, over all its keys; NULL is as much as the machine gives. keys_given is what a server asks
-- before it lets anybody in without a key: it sees the tenants, and no tenant's keys.
ALTER TABLE tenant ADD COLUMN rate_minute bigint CHECK (rate_minute > 0);
ALTER TABLE tenant ADD COLUMN quota_day bigint CHECK (quota_day > 0);
ALTER TABLE tenant ADD COLUMN keys_given smallint NOT NULL DEFAULT 0 CHECK (keys_given IN (0, 1));
GRANT UPDATE (rate_minute, quota_day, keys_given) ON tenant TO herdbook_app;

CREATE FUNCTION access_key_is_given_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = herdbook, pg_temp AS $$
BEGIN
  UPDATE tenant SET keys_given = 1 WHERE id = NEW.tenant AND keys_given = 0;
  RETURN NULL;
END $$;
CREATE TRIGGER access_key_is_given_v1 AFTER INSERT ON access_key FOR EACH ROW EXECUTE FUNCTION access_key_is_given_v1();
