"""What sources write, as we can keep it: times as seconds since 1970 and back, texts as well-formed Unicode."""

from __future__ import annotations

import math
import re
import time
from calendar import timegm
from typing import Any

ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")


COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SECONDS_MAX = 1e11  # beyond it a number counts smaller parts: JavaScript's milliseconds, a collector's nanoseconds


def moment(value: Any) -> float:
    """A number or a text as loggers write it; 0 for what is no time."""
    if isinstance(value, str):
        return seconds_of(value)
    try:
        at = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    if isinstance(value, bool) or not math.isfinite(at) or not 0 <= at < SECONDS_MAX * 1e9:
        return 0.0
    while at >= SECONDS_MAX:
        at /= 1000
    return at


def well_formed(value: Any) -> Any:
    """A value of JSON whose texts can be written down anywhere: half a surrogate pair becomes a question mark."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [well_formed(each) for each in value]
    if isinstance(value, dict):
        return {well_formed(name): well_formed(each) for name, each in value.items()}
    return value


def readable(text: str) -> str:
    """What was printed, without colours and other orders to a terminal: no pattern sees through those, no record keeps them."""
    if text.isprintable():
        return text
    plain = COLOURS.sub("", text.encode("utf-8", "replace").decode())
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in plain)


def seconds_of(text: str) -> float:
    """0 for what is no ISO 8601 time."""
    found = ISO.match(text)
    if found is None:
        return 0.0
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    try:
        whole = timegm((year, month, day, hour, minute, second))
    except (ValueError, OverflowError):  # because the thirteenth month is no time either
        return 0.0
    zone = found[8] or "Z"
    shift = 0 if zone == "Z" else int(zone[:3]) * 3600 + int(zone[0] + zone[-2:]) * 60
    return whole - shift + float(found[7] or 0)


def iso_of(seconds: float) -> str:
    whole = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{round((seconds - whole) * 1e6):06d}Z"
