"""Other products, run as their makers want them run, for measurements side by side. No code of theirs is here."""
