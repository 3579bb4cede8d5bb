"""Runs become training sets: drafts, examples, rows in a target's form, splits, and a manifest of where each row came from."""
