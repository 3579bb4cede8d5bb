"""The signature of an approach: what was tried in the same words is one dead end, whoever tried it and however it was spaced."""

from __future__ import annotations

from hashlib import sha256


def dead_end_key(approach: str) -> str:
    """The key under which it is known that an approach did not work."""
    return f"dead-end-{sha256(' '.join(approach.split()).encode()).hexdigest()[:16]}"
