"""A model examined on what it was not taught: its calls at held-out decisions beside those of whoever it has to beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from herdbook.base.errors import InvalidRequest
from herdbook.slowloop.models.acts import Act, held_out, taught
from herdbook.slowloop.models.baselines import Majority, Replay
from herdbook.slowloop.models.judging import BASE, MODEL, Calls, judge

SEED: Final = 20
ACTS_MAX: Final = 400  # the newest tasks are held out anyway; more would only cost

Caller = Callable[[Sequence[Act]], Calls]


def acts_of(data: Path, *, acts_max: int = ACTS_MAX) -> list[Act]:
    """What is examined: the same acts each time. Raises InvalidRequest where nothing was held out."""
    acts = held_out(data)[:acts_max]
    if not any(act.good for act in acts):
        raise InvalidRequest(f"{data} holds out no call of a successful run: export with a larger --holdout, or more runs")
    return acts


def examined(data: Path, *, model: Caller, base: Caller, acts_max: int = ACTS_MAX) -> dict[str, Any]:
    """The report that `refusals` reads."""
    acts, known = acts_of(data, acts_max=acts_max), taught(data)
    majority, replay = Majority(known), Replay(known)
    rivals = {"majority": [majority.call(act) for act in acts], "replay": [replay.call(act) for act in acts]}
    return judge(acts, {MODEL: model(acts), BASE: base(acts), **rivals}, seed=SEED)
