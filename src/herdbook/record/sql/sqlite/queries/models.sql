-- name: insert_model_route
-- Appended; the newest counts.
INSERT INTO model_route (tenant, alias, n, route, why, identity, at, seal)
VALUES (:tenant, :alias, :n, :route, :why, :identity, :at, :seal);

-- name: model_route
-- What answers under an alias now, with what its seal covers.
SELECT alias, n, route, why, identity, at, seal FROM model_route WHERE tenant = :tenant AND alias = :alias ORDER BY n DESC LIMIT 1;

-- name: model_route_was
-- What answered under an alias then.
SELECT alias, n, route, why, identity, at, seal FROM model_route WHERE tenant = :tenant AND alias = :alias AND n = :n;

-- name: model_routes
-- Every route of an alias, or of all, oldest first: few rows, walked in the process.
SELECT alias, n, route, why, identity, at, seal FROM model_route
WHERE tenant = :tenant AND (:alias IS NULL OR alias = :alias) ORDER BY alias, n;

-- name: insert_model_call
-- One call.
INSERT INTO model_call (tenant, alias, model, session, id, n, prompt_tokens, answer_tokens, milliseconds, at)
VALUES (:tenant, :alias, :model, :session, :id, :n, :prompt_tokens, :answer_tokens, :milliseconds, :at);

-- name: runs_of_models
-- Which runs each model of an alias had a part in, with its calls, and where they were about.
SELECT c.model, c.session, count(*), coalesce(s.entity, '') FROM model_call c
JOIN session s ON s.tenant = c.tenant AND s.id = c.session
WHERE c.tenant = :tenant AND c.alias = :alias GROUP BY c.model, c.session, s.entity ORDER BY c.model, c.session;
