-- Vectors of versions: a cache, made again at will. A space is a model, its dimensions and how texts are cut; spaces never mix.
CREATE TABLE vector (
  tenant bigint NOT NULL REFERENCES tenant (id),
  space text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  pieces bytea NOT NULL, -- all pieces of the version one after the other, little-endian half floats
  n bigint NOT NULL, -- when it came, in row ids: how a process knows which it has not seen
  PRIMARY KEY (tenant, space, version)
);
-- What a process has not seen yet, in order.
CREATE UNIQUE INDEX vector_as_it_came ON vector (tenant, space, n);
GRANT DELETE ON vector TO herdbook_app;
