-- name: insert_audit
-- One thing somebody did.
INSERT INTO audit (tenant, at, request, identity, key, box, channel, verb, entity, what, code, writer, n, before, seal)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                     %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bytea[], %s::bytea[]);

-- name: audit
-- Newest first, from a time and a place on; each filter may be left out.
SELECT at, request, identity, key, box, channel, verb, entity, what, code, writer, n, before, seal FROM audit
WHERE tenant = %(tenant)s AND at >= %(since)s AND (at, writer, n) < (%(before_at)s, %(before_writer)s, %(before_n)s)
  AND (%(who)s::text IS NULL OR identity = %(who)s OR key = %(who)s OR box = %(who)s) AND (%(verb)s::text IS NULL OR verb = %(verb)s)
  AND (%(code)s::text IS NULL OR code = %(code)s) AND (%(path)s::text IS NULL OR entity = %(path)s OR (entity > %(low)s AND entity < %(high)s))
ORDER BY at DESC, writer DESC, n DESC LIMIT %(limit)s;

-- name: audit_chain
-- Every row, chain by chain: for who checks all of them.
SELECT at, request, identity, key, box, channel, verb, entity, what, code, writer, n, before, seal FROM audit
WHERE tenant = %(tenant)s AND (writer, n) > (%(writer)s, %(n)s) ORDER BY writer, n LIMIT %(limit)s;

-- name: allowance
-- What is left of one.
SELECT remaining, at FROM allowance WHERE tenant = %(tenant)s AND subject = %(subject)s AND per = %(per)s;

-- name: set_allowance
-- What is left after a server took its part.
INSERT INTO allowance (tenant, subject, per, remaining, at) VALUES (%(tenant)s, %(subject)s, %(per)s, %(remaining)s, %(at)s)
ON CONFLICT (tenant, subject, per) DO UPDATE SET remaining = excluded.remaining, at = excluded.at;
