"""How long, as people write it: 90d, 12h, 30m, 45s."""

from __future__ import annotations

import argparse
import re
from typing import Final

UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "": 1}


def seconds(text: str) -> int:
    """Seconds, or a refusal that shows how it is written."""
    found = re.fullmatch(r"(\d{1,9})([dhms]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no length of time: write 90d, 12h, 30m or 45s")
    return int(found[1]) * UNITS[found[2]]
