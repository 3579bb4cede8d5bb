"""Files that others keep for their agents, read as facts."""
