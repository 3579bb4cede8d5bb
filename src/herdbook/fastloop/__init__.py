"""Within a run: what to read, best first, within a budget. It ranks and words what the record holds, and stores nothing."""
