"""Meeting agents where they are: their hooks tell the record what happens, and give the agent its briefing."""
