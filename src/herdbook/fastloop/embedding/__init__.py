"""How alike texts are in meaning: one small protocol, several models behind it, and vectors that are a cache of the record."""
