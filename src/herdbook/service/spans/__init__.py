"""Spans of other people's tracing, as actions of runs."""
