-- name: insert_audit
-- One thing somebody did.
INSERT INTO audit (tenant, at, request, identity, key, box, channel, verb, entity, what, code, writer, n, before, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: audit
-- Newest first, from a time and a place on; each filter may be left out.
SELECT at, request, identity, key, box, channel, verb, entity, what, code, writer, n, before, seal FROM audit
WHERE tenant = :tenant AND at >= :since AND (at, writer, n) < (:before_at, :before_writer, :before_n)
  AND (:who IS NULL OR identity = :who OR key = :who OR box = :who) AND (:verb IS NULL OR verb = :verb)
  AND (:code IS NULL OR code = :code) AND (:path IS NULL OR entity = :path OR (entity > :low AND entity < :high))
ORDER BY at DESC, writer DESC, n DESC LIMIT :limit;

-- name: audit_chain
-- Every row, chain by chain: for who checks all of them.
SELECT at, request, identity, key, box, channel, verb, entity, what, code, writer, n, before, seal FROM audit
WHERE tenant = :tenant AND (writer, n) > (:writer, :n) ORDER BY writer, n LIMIT :limit;

-- name: allowance
-- What is left of one.
SELECT remaining, at FROM allowance WHERE tenant = :tenant AND subject = :subject AND per = :per;

-- name: set_allowance
-- What is left after a server took its part.
INSERT INTO allowance (tenant, subject, per, remaining, at) VALUES (:tenant, :subject, :per, :remaining, :at)
ON CONFLICT (tenant, subject, per) DO UPDATE SET remaining = excluded.remaining, at = excluded.at;
