"""Commands as a person types them, in this process or as one of their own."""

from __future__ import annotations

from tests.cli.conftest import process, said

__all__ = ["process", "said"]
