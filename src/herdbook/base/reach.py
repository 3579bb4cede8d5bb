"""Which entity paths a credential reaches. Pure.

A pattern is an entity path of which any part may be `*`, meaning any one part; it covers every path that matches and everything
below it. `acme/checkout` covers `acme/checkout/tests`; `acme/*/public` covers `acme/ci/public`; `*` alone covers all. A path that
no pattern covers is out of reach, whether or not there is anything at it: nobody who asks can tell the two apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from herdbook.base import limits, text
from herdbook.base.errors import InvalidRequest, TooLarge

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Reach:
    """The paths that some patterns cover. Without patterns it covers nothing."""

    patterns: tuple[str, ...]
    everything: bool = field(init=False, compare=False)
    parts: tuple[tuple[str, ...], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "everything", ANY in self.patterns)
        object.__setattr__(self, "parts", tuple(tuple(pattern.split("/")) for pattern in self.patterns))

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Self:
        """These patterns in canonical form and order, each once. Raises InvalidRequest for one that is none."""
        found = sorted({checked(pattern) for pattern in patterns})
        if len(found) > limits.REACH_PATTERNS_MAX:
            raise TooLarge(f"{len(found)} patterns are over the limit of {limits.REACH_PATTERNS_MAX}: give a wider one")
        return cls((ANY,) if ANY in found else tuple(found))

    def covers(self, path: str) -> bool:
        """Whether a canonical entity path is within reach."""
        if self.everything:
            return True
        asked = path.split("/")
        return any(matches(pattern, asked) for pattern in self.parts)

    def within(self, paths: Iterable[str]) -> list[str]:
        """Those of these paths that are covered, in their order."""
        return list(paths) if self.everything else [path for path in paths if self.covers(path)]

    def includes(self, other: Reach) -> bool:
        """Whether everything the other covers is covered here: nobody hands on more than they have."""
        return self.everything or all(any(matches(mine, theirs) for mine in self.parts) for theirs in other.parts)

    def roots(self) -> list[str]:
        """Where what is covered begins: each pattern up to its first `*`; the empty text for one that begins with it."""
        found = sorted({"/".join(pattern[: pattern.index(ANY)] if ANY in pattern else pattern) for pattern in self.parts})
        return [root for root in found if not any(root != other and is_below(root, other) for other in found)]

    @property
    def written(self) -> str | None:
        """As the record keeps it beside a session; None for everything."""
        return None if self.everything else json.dumps(self.patterns, ensure_ascii=False)


EVERYTHING: Final = Reach((ANY,))


def is_below(path: str, root: str) -> bool:
    return root == "" or path == root or path.startswith(f"{root}/")


def touch(under: str, root: str) -> bool:
    """Whether one of two paths is below the other."""
    return is_below(under, root) or is_below(root, under)


def matches(pattern: Sequence[str], asked: Sequence[str]) -> bool:
    """Part by part, as far as the pattern goes. A `*` that is asked about is only covered by a `*`."""
    return len(pattern) <= len(asked) and all(mine in (ANY, theirs) for mine, theirs in zip(pattern, asked, strict=False))


def checked(pattern: str) -> str:
    """One pattern in canonical form."""
    path = text.entity_path(pattern)
    mixed = next((part for part in path.split("/") if ANY in part and part != ANY), None)
    if mixed is not None:
        raise InvalidRequest(f"{mixed!r} is neither a name nor `*`: a pattern is a path of which whole parts may be `*`")
    stars = path.split("/")
    return ANY if set(stars) == {ANY} and len(stars) == 1 else path
