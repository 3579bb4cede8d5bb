"""Numbers that fit an entity better than the defaults: multipliers, half-life; and whether confidence means what it says."""
