"""A write that names an approach instead of a key: the dead end that it is, under the approach's signature, on every surface.

One approach tried again is one entry still. What contradicts that it did not work is refused; a value of its own says it as well.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from herdbook.base import limits, text
from herdbook.base.approach import dead_end_key
from herdbook.base.errors import InvalidRequest, InvalidValue
from herdbook.record.trust import DEAD_END_CONFIDENCE
from herdbook.service.requests import Write

KINDS: Final = ("fact", "experience")  # the first is what a write is that does not say


def keyed(request: Write) -> Write:
    """The write with its key and value in place."""
    if request.approach is None:
        if request.key is None or request.value is msgspec.UNSET:
            raise InvalidRequest("a write needs a key and a value, or the approach of a dead end in their place")
        return request
    if request.key is not None:
        raise InvalidRequest("give a key, or an approach, whose signature is the key")
    if request.worked is True or request.kind not in KINDS:
        raise InvalidRequest("an approach is of a dead end, an experience that did not work: give what worked a key")
    approach = text.prose(request.approach, what="approach", chars_max=limits.WHY_CHARS_MAX)
    if not approach.strip():
        raise InvalidRequest("an approach is the words for what was tried: say it")
    return msgspec.structs.replace(
        request,
        key=dead_end_key(approach),
        value=said(approach, request.value),
        approach=None,
        kind="experience",
        worked=False,
        confidence=DEAD_END_CONFIDENCE if request.confidence is None else request.confidence,
    )


def said(approach: str, value: Any) -> dict[str, Any]:
    """The value with the approach in it, since a signature tells nobody what was tried."""
    if value is msgspec.UNSET or value is None:
        return {"approach": approach}
    if not isinstance(value, dict):
        raise InvalidValue("the value of an approach is an object, to which the approach is added: send one, or none")
    return value | {"approach": approach}
