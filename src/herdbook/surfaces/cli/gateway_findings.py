"""What `doctor` says of the credential gateway: can it open what it keeps, who may use that, and does a server answer."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

from herdbook.base.settings import Settings
from herdbook.boxes.provider import Finding
from herdbook.surfaces.cli.terminal import line

USUAL: Final = "http://127.0.0.1:8766"  # where `herdbook gateway serve` listens without being told
SECONDS: Final = 2.0


def findings(settings: Settings) -> Iterator[Finding]:
    if not settings.gateway.is_dir():
        how = "To give boxes a service without its key: herdbook gateway add NAME --to URL"
        yield Finding(ok=True, what=f"gateway: there are no connections. {how}")
        return
    try:
        from herdbook.gateway.keeping import Gatekeeper
    except ModuleNotFoundError as problem:
        why = f"gateway: there are connections, but the package {problem.name} is missing, so boxes cannot use them"
        yield Finding(ok=False, what=why, fix="pip install 'herdbook[gateway]'")
        return
    kept = Gatekeeper.of(settings, by="doctor").all()
    yield vault_key(settings, kept)
    yield from (connection(each) for each in kept)
    yield server(USUAL)


def vault_key(settings: Settings, kept: list[dict[str, Any]]) -> Finding:
    """Whether what is sealed can be opened. Its own words say what is wrong with the file."""
    from herdbook.base.errors import HerdbookError
    from herdbook.gateway.keeper import FileKeeper

    if not kept:
        return Finding(ok=True, what="gateway: there are no connections, so no vault key is needed yet")
    try:
        FileKeeper(settings.gateway_key_file).opened()
    except HerdbookError as problem:
        what, _, fix = problem.message.partition(": ")
        return Finding(ok=False, what=f"gateway: {line(what)}", fix=fix or "put the key file back, or set every secret anew")
    return Finding(ok=True, what=f"gateway: the vault key is at {settings.gateway_key_file}, for its owner only")


def connection(told: dict[str, Any]) -> Finding:
    name = line(told["connection"])
    if "problem" in told:
        what, _, fix = str(told["problem"]).partition(": ")
        return Finding(ok=False, what=f"gateway: {name}: {line(what)}", fix=fix or f"remove {name} and add it again")
    missing = {
        f"it was revoked; herdbook gateway rotate {name} brings it back": told["revoked"],
        f"nothing is allowed; herdbook gateway rules {name} --allow RULE": not told["rules"],
        f"no box may use it; herdbook gateway grant {name} --label LABEL": not told["grants"],
    }
    said = [what for what, is_so in missing.items() if is_so]
    return Finding(ok=True, what=f"gateway: {name} leads to {line(told['service'])}" + "".join(f"; {each}" for each in said))


def server(url: str) -> Finding:
    """Only boxes that have no socket of this machine need one, so that there is none is nothing wrong."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=SECONDS):
            return Finding(ok=True, what=f"gateway: a server answers at {url}")
    except (urllib.error.URLError, OSError, ValueError):
        need = "Boxes of this machine need none, their sockets carry it; boxes elsewhere do: herdbook gateway serve"
        return Finding(ok=True, what=f"gateway: no server of its own at {url}. {need}")
