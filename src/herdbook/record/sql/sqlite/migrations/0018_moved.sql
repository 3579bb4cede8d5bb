-- What has moved at a path is found without a look at every claim of it. A claim that never moved is not in here: a write costs no more.
CREATE INDEX claim_moved ON claim (tenant, path, touched) WHERE touched > 0;
