"""Runs that ended in an outcome, as the slow loop looks at them: what each was told, what it came to, and what it cost.

They come from the record in the form of the verb `exposures`; the last outcome of a run counts, as revised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from herdbook.base.clock import from_iso
from herdbook.record import exposures
from herdbook.record.store.protocol import Reader

PAGE: Final = 500
CONTROL: Final = "control"
CHARS_PER_TOKEN: Final = 4.0


@dataclass(frozen=True, slots=True)
class Exposure:
    """One version a run was shown, or had withheld."""

    claim: str
    place: tuple[str, str, int]  # entity, key, version
    serving: str | None
    rank: int
    served: bool
    probability: float  # of being served
    features: tuple[float, ...]
    form: str  # which names the features have
    used: str | None
    credit: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run."""

    session: str
    asked: str  # the entity path its first briefing was about
    arm: str  # on, holdback or control
    type: str  # of its last outcome
    attested: bool
    tries: int
    seconds: float
    at: int
    task: str
    exposures: tuple[Exposure, ...]

    @property
    def success(self) -> bool:
        return self.type == "success"

    @property
    def told(self) -> bool:
        """Whether it was told what is known."""
        return self.arm != CONTROL


def parsed(told: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Runs that were briefed, in the order of their outcomes: the others say nothing of what briefings are worth."""
    return [run_of(each) for each in told if any(serving["how"] == "briefing" for serving in each["servings"])]


def run_of(told: Mapping[str, Any]) -> Run:
    briefings = [serving for serving in told["servings"] if serving["how"] == "briefing"]
    arms = {serving["arm"] for serving in briefings}
    forms = {serving["serving"]: str(serving["policy"]).rpartition("/")[2] for serving in told["servings"]}
    at = from_iso(told["outcome"]["at"])
    return Run(
        session=told["session"],
        asked=briefings[0]["asked"],
        arm=CONTROL if CONTROL in arms else "holdback" if "holdback" in arms else "on",
        type=told["outcome"]["type"],
        attested=told["outcome"]["attested"],
        tries=1 + sum(attempt["result"] == "failure" for attempt in told["attempts"]),
        seconds=max(0.0, (at - from_iso(told["started_at"])) / 1e6),
        at=at,
        task=told["task"] or "",
        exposures=tuple(exposure_of(read, forms) for read in told["reads"]),
    )


def exposure_of(read: Mapping[str, Any], forms: Mapping[str, str]) -> Exposure:
    return Exposure(
        claim=f"{read['entry']}:{read['claim']}",
        place=(read["entity"], read["key"], read["version"]),
        serving=read["serving"],
        rank=read["rank"],
        served=read["served"],
        probability=read["probability"],
        features=tuple(read["features"]),
        form=forms.get(read["serving"] or "", ""),
        used=read["used"],
        credit=read["credit"],
    )


def runs_under(reader: Reader, tenant: int, path: str, *, runs_max: int) -> list[Run]:
    """The newest so many runs that were briefed about a path or what is below it; all paths, under the empty one."""
    found: deque[Run] = deque(maxlen=runs_max)
    after: int | None = 0
    while after is not None:
        page = exposures.resolved(reader, tenant, under=path, after=after, limit=PAGE)
        found.extend(run for run in parsed(page["runs"]) if below(run.asked, path))
        after = None if page["next"] is None else int(page["next"])
    return list(found)


def below(asked: str, path: str) -> bool:
    return not path or asked == path or asked.startswith(f"{path}/")
