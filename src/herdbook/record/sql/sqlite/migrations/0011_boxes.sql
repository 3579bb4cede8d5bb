-- What a box writes while it competes is a draft, until its host says that it has won.
ALTER TABLE box ADD COLUMN competes INTEGER NOT NULL DEFAULT 0 CHECK (competes IN (0, 1));
-- The digest of what the address of this box ends in, where a provider's connector says only that one of its boxes calls.
ALTER TABLE box ADD COLUMN claim TEXT CHECK (claim IS NULL OR length(claim) = 64);
-- The runs of a box, for its host.
CREATE INDEX session_of_box ON session (tenant, box) WHERE box IS NOT NULL;
