"""Pages for people: what the record holds and why it is trusted, to look at. They ask verbs, and change nothing."""
