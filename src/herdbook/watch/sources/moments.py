"""Times as sources write them, as seconds since 1970 and back."""

from __future__ import annotations

import re
import time
from calendar import timegm

ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")


def seconds_of(text: str) -> float:
    """0 for what is no ISO 8601 time."""
    found = ISO.match(text)
    if found is None:
        return 0.0
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    whole = timegm((year, month, day, hour, minute, second))
    zone = found[8] or "Z"
    shift = 0 if zone == "Z" else int(zone[:3]) * 3600 + int(zone[0] + zone[-2:]) * 60
    return whole - shift + float(found[7] or 0)


def iso_of(seconds: float) -> str:
    whole = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{round((seconds - whole) * 1e6):06d}Z"
