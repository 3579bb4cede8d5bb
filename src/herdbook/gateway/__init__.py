"""Credentials are kept here so that boxes hold none: see DESIGN.md."""
