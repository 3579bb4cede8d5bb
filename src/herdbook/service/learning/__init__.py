"""Verbs for what is learnt from the record: what may be tuned at a path, and what was shown with what came of it."""
