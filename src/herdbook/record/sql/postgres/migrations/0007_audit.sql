-- Who did what through a credential or a listener. Kept by time, as it is asked for; each process adds to a chain of its own.
CREATE TABLE audit (
  tenant bigint NOT NULL,
  at bigint NOT NULL,
  request text NOT NULL,
  identity text NOT NULL,
  key text,
  box text,
  channel text NOT NULL,
  verb text NOT NULL,
  entity text COLLATE "C",
  what text NOT NULL CHECK (what::json IS NOT NULL),
  code text NOT NULL,
  writer text COLLATE "C" NOT NULL,
  n bigint NOT NULL CHECK (n >= 1),
  before bytea, -- the seal of the row before it in its chain
  seal bytea,
  PRIMARY KEY (tenant, at, writer, n)
);
CREATE TRIGGER audit_is_immutable_v1 BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');
CREATE TRIGGER audit_is_kept_v1 BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_v1('herdbook:append_only');

-- How much of what a key, or a tenant as a whole (under ''), may ask for is left, and as of when: one bucket for every server.
CREATE TABLE allowance (
  tenant bigint NOT NULL REFERENCES tenant (id),
  subject text COLLATE "C" NOT NULL,
  per text NOT NULL CHECK (per IN ('minute', 'day')),
  remaining double precision NOT NULL CHECK (remaining >= 0 AND remaining < 'Infinity'),
  at bigint NOT NULL,
  PRIMARY KEY (tenant, subject, per)
);
GRANT UPDATE (remaining, at) ON allowance TO herdbook_app;
