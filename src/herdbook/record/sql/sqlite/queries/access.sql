-- name: access_key
-- A key by its lookup id, with what its tenant as a whole may ask for: what admitting a request needs, in one row.
SELECT k.id, k.name, k.digest, k.identity, k.role, k.attest, k.verbs, k.reach, k.connections, k.rate_minute, k.quota_day,
       k.created_at, k.created_by, k.seal, k.ends_at, k.end_seal, t.rate_minute, t.quota_day
FROM access_key k JOIN tenant t ON t.id = k.tenant WHERE k.tenant = :tenant AND k.id = :key;

-- name: access_keys
-- A tenant's keys, newest last; of one name or id, or all.
SELECT k.id, k.name, k.digest, k.identity, k.role, k.attest, k.verbs, k.reach, k.connections, k.rate_minute, k.quota_day,
       k.created_at, k.created_by, k.seal, k.ends_at, k.end_seal
FROM access_key k
WHERE k.tenant = :tenant AND (:name IS NULL OR k.name = :name OR k.id = :name)
ORDER BY k.created_at, k.id LIMIT :limit;

-- name: living_access_keys
-- How many keys of a tenant still open something.
SELECT count(*) FROM access_key WHERE tenant = :tenant AND (ends_at IS NULL OR ends_at > :now);

-- name: any_access_key
-- Whether anybody was ever given a key: from then on a server asks for one.
SELECT EXISTS (SELECT 1 FROM access_key);

-- name: insert_access_key
-- A key is written once; only its end can come nearer.
INSERT INTO access_key (id, name, digest, identity, role, attest, verbs, reach, connections, rate_minute, quota_day,
                        created_at, created_by, seal, ends_at, end_seal, tenant)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_access_key
-- From this moment on it opens nothing.
UPDATE access_key SET ends_at = :ends_at, end_seal = :end_seal WHERE tenant = :tenant AND id = :key;

-- name: tenants
-- Who there is, for the operator of the server alone.
SELECT id, name, rate_minute, quota_day FROM tenant WHERE :name IS NULL OR name = :name ORDER BY id;

-- name: next_tenant
-- Tenants are few: numbers in order, under the write lock.
SELECT 1 + coalesce(max(id), 0) FROM tenant;

-- name: insert_tenant
-- A new trust domain; a trigger gives it the multipliers everybody starts with.
INSERT INTO tenant (id, name, rate_minute, quota_day) VALUES (:tenant, :name, :rate_minute, :quota_day);

-- name: limit_tenant
-- What a tenant as a whole may ask for from now on.
UPDATE tenant SET rate_minute = :rate_minute, quota_day = :quota_day WHERE id = :tenant;
