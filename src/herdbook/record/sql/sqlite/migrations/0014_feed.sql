-- Attestations and revisions take a number in the order of commits, too, and so a place in the feed; those from before have none.
ALTER TABLE attestation ADD COLUMN id INTEGER;
ALTER TABLE revision ADD COLUMN id INTEGER;
-- What the feed goes on with.
CREATE INDEX attestation_as_it_came ON attestation (tenant, id) WHERE id IS NOT NULL;
-- What the feed goes on with.
CREATE INDEX revision_as_it_came ON revision (tenant, id) WHERE id IS NOT NULL;
-- Whoever reaches a few paths looks through their runs only; runs about no path are one's own.
CREATE INDEX session_of_entity ON session (tenant, entity, identity);
