"""Models tuned on a tenant's own runs: made, examined on its later decisions, and promoted only if they are better."""
