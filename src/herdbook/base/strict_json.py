"""JSON as the record accepts it, from bytes or from Python: no duplicate keys, no NaN, bounded depth and digits.

Two parsers that disagree about `{"a": 1, "a": 2}` are how a checker and a store come to see different values, so it is refused.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

from herdbook.base import limits
from herdbook.base.errors import InvalidRequest, InvalidValue, TooLarge
from herdbook.base.text import whole_characters

ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def loads(data: bytes | str) -> Any:
    """Parse JSON strictly; every refusal is a typed error that names what is wrong."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return DECODER.decode(text)
    except UnicodeDecodeError as problem:
        raise InvalidRequest(f"the body is not UTF-8: {problem.reason} at byte {problem.start}") from problem
    except RecursionError as problem:
        raise TooLarge(f"the JSON is nested deeper than {limits.VALUE_DEPTH_MAX} levels") from problem
    except json.JSONDecodeError as problem:
        raise InvalidRequest(f"this is not JSON: {problem.msg} at character {problem.pos}") from problem


def canonical(value: object, *, bytes_max: int = limits.VALUE_BYTES_MAX) -> str:
    """The one text of a value: sorted keys, no spaces, UTF-8 kept as it is. Raises InvalidValue or TooLarge."""
    check(value, depth=0)
    text = ENCODER.encode(value)
    size = len(text) if text.isascii() else len(whole_characters(text, what="value").encode())
    if size > bytes_max:
        raise TooLarge(f"the value is {size} bytes as JSON, the limit is {bytes_max}: store a pointer to it instead")
    return text


def check(value: object, *, depth: int) -> None:
    """Refuse what JSON cannot say or two readers would read differently."""
    if value is None or isinstance(value, str | bool):
        return
    if isinstance(value, int):
        if value.bit_length() > limits.INTEGER_DIGITS_MAX * 3.33:
            raise TooLarge(f"an integer has more than {limits.INTEGER_DIGITS_MAX} digits: send it as text")
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValue(f"{value} is not a JSON number: send null or text")
        return
    if depth >= limits.VALUE_DEPTH_MAX:
        raise TooLarge(f"the value is nested deeper than {limits.VALUE_DEPTH_MAX} levels")
    check_container(value, depth=depth)


def check_container(value: object, *, depth: int) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                raise InvalidValue(f"an object key is {type(key).__name__}, not text")
            if type(member) is not str:  # most members are texts, and nothing is wrong with those
                check(member, depth=depth + 1)
    elif isinstance(value, list | tuple):
        for member in value:
            if type(member) is not str:
                check(member, depth=depth + 1)
    else:
        raise InvalidValue(f"{type(value).__name__} is not a JSON type")


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)  # in one pass: a body of many twins must not cost the square of them
        raise InvalidValue(f"the object key {counts.most_common(1)[0][0]!r} appears twice: send it once")
    return found


def refuse_constant(word: str) -> NoReturn:
    raise InvalidValue(f"{word} is not JSON: send a finite number, null or text")


def bounded_int(digits: str) -> int:
    if len(digits) > limits.INTEGER_DIGITS_MAX:
        raise TooLarge(f"an integer has {len(digits)} digits, the limit is {limits.INTEGER_DIGITS_MAX}: send it as text")
    return int(digits)


# Made once: building one costs as much as decoding a small body. A byte order mark is refused by the decoder itself.
DECODER = json.JSONDecoder(object_pairs_hook=unique_pairs, parse_constant=refuse_constant, parse_int=bounded_int)
