"""Which provider to use. `auto` takes the strongest that really isolates here, or refuses.

It never settles for a plain process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from herdbook.base.errors import CannotIsolate, NotFound
from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.containers import Containers
from herdbook.boxes.provider import Finding, Isolation, Provider, at_least, demand
from herdbook.boxes.sprites import TOKENS, Sprites
from herdbook.boxes.unsafe_process import UnsafeProcess

AUTO: Final = "auto"
PROVIDERS: Final[Mapping[str, Callable[[Path], Provider]]] = {
    "sprites": Sprites,
    "docker": partial(Containers, name="docker"),
    "podman": partial(Containers, name="podman"),
    "bubblewrap": Bubblewrap,
    "unsafe-process": UnsafeProcess,
}
STRONGEST_FIRST: Final = ("sprites", "docker", "podman", "bubblewrap")  # what `auto` may take; unsafe-process is never among them


def choose(name: str = AUTO, *, minimum: Isolation | None = None, state_dir: Path | str) -> Provider:
    """A provider that was seen to work a moment ago. Without `minimum`, `auto` asks for `namespace`, and a name for itself."""
    if name == AUTO:
        return strongest(minimum or "namespace", Path(state_dir))
    provider = by_name(name, Path(state_dir))
    if minimum is not None:
        demand(provider, minimum)
    finding = provider.probe()
    if not finding.ok:
        raise refusal([finding])
    return provider


def strongest(minimum: Isolation, state_dir: Path) -> Provider:
    findings = []
    for name in STRONGEST_FIRST:
        provider = by_name(name, state_dir)
        if not at_least(provider.isolation, minimum):
            findings.append(
                Finding(ok=False, what=f"{name}: isolates only as {provider.isolation!r}", fix=f"{minimum!r} is asked for")
            )
            continue
        findings.append(provider.probe())
        if findings[-1].ok:
            return provider
    raise refusal(findings)


def by_name(name: str, state_dir: Path) -> Provider:
    """Each provider has a directory of its own, so that one never lists another's boxes."""
    if name not in PROVIDERS:
        raise NotFound(f"there is no box provider {name!r}: choose one of {', '.join((AUTO, *PROVIDERS))}")
    return PROVIDERS[name](state_dir / name)


def in_use(state_dir: Path) -> list[Provider]:
    """Every provider that may have boxes of ours, unsafe ones too."""
    elsewhere = {Sprites.name} if any(os.environ.get(name) for name in TOKENS) else set()
    return [by_name(name, state_dir) for name in PROVIDERS if name in elsewhere or (state_dir / name).is_dir()]


def findings(state_dir: Path | str) -> list[Finding]:
    """What each provider that isolates finds here, strongest first. One that works is enough, the others are told of."""
    found = [by_name(name, Path(state_dir)).probe() for name in STRONGEST_FIRST]
    if not any(finding.ok for finding in found):
        return found
    return [each if each.ok else Finding(ok=True, what=f"{each.what}. To use it: {each.fix}") for each in found]


def refusal(found: list[Finding]) -> CannotIsolate:
    lines = [f"{finding.what}. Fix: {finding.fix}" for finding in found]
    return CannotIsolate("no box provider can isolate here. " + " | ".join(lines), findings=lines)
