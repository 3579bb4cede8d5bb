"""A ranker from what was shown and what came of it, only if it was better on runs it had not seen."""
