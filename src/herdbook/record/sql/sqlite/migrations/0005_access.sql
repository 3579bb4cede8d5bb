-- Access keys: what a credential may do. The key itself is shown once and not here; its digest is, and the row is sealed.
CREATE TABLE access_key (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  id TEXT NOT NULL CHECK (length(id) BETWEEN 1 AND 64),
  name TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  identity TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'box', 'host', 'watcher', 'admin', 'operator')),
  attest INTEGER NOT NULL CHECK (attest IN (0, 1)),
  verbs TEXT CHECK (verbs IS NULL OR json_valid(verbs)), -- only these of the role's; NULL is all of them
  reach TEXT CHECK (reach IS NULL OR json_valid(reach)), -- entity-path patterns; NULL is everything
  connections TEXT NOT NULL CHECK (json_valid(connections)),
  rate_minute INTEGER CHECK (rate_minute > 0),
  quota_day INTEGER CHECK (quota_day > 0),
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  ends_at INTEGER, -- when it stops being good: its expiry, or the moment it was revoked; never moved further away
  seal BLOB NOT NULL, -- over everything but the end
  end_seal BLOB NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
-- By the name people use, and to see whether a name is taken.
CREATE INDEX access_key_of_name ON access_key (tenant, name);

CREATE TRIGGER access_key_only_ends_v1 BEFORE UPDATE ON access_key
WHEN NEW.ends_at IS NULL OR NEW.ends_at > OLD.ends_at
  OR (NEW.tenant, NEW.id, NEW.name, NEW.digest, NEW.identity, NEW.role, NEW.attest, NEW.connections, NEW.created_at, NEW.created_by,
      NEW.seal) <> (OLD.tenant, OLD.id, OLD.name, OLD.digest, OLD.identity, OLD.role, OLD.attest, OLD.connections, OLD.created_at,
      OLD.created_by, OLD.seal)
  OR NEW.verbs IS NOT OLD.verbs OR NEW.reach IS NOT OLD.reach
  OR NEW.rate_minute IS NOT OLD.rate_minute OR NEW.quota_day IS NOT OLD.quota_day BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;
CREATE TRIGGER access_key_is_kept_v1 BEFORE DELETE ON access_key BEGIN
  SELECT RAISE(ABORT, 'herdbook:append_only');
END;

-- What a tenant as a whole may ask for, over all its keys; NULL is as much as the machine gives.
ALTER TABLE tenant ADD COLUMN rate_minute INTEGER CHECK (rate_minute > 0);
ALTER TABLE tenant ADD COLUMN quota_day INTEGER CHECK (quota_day > 0);
