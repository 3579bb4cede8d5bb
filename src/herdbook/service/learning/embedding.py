"""What the service knows of the semantic leg: how far its vectors have come, or why there are none."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from herdbook.base.errors import HerdbookError
from herdbook.fastloop.ordering import NO_EMBEDDER, OFF
from herdbook.service.callers import DEFAULT_TENANT

if TYPE_CHECKING:
    from herdbook.service.door import Service


@runtime_checkable
class Embedding(Protocol):
    """The semantic leg where it has vectors of its own to make."""

    def embed_next(self, tenant: int, *, after: int, limit: int) -> int: ...
    def state(self, tenant: int) -> dict[str, Any]: ...
    def tidy(self, tenant: int) -> None: ...


def warm(service: Service) -> None:
    """Load the model behind the scenes: who asks a server first may not wait as long as that takes."""
    meanings = service.briefer.orderer.semantics
    if isinstance(meanings, Embedding):
        loading = partial(embedding, service, DEFAULT_TENANT)
        # Waited for at the end: a process that ends while its model is loaded is aborted.
        threading.Thread(target=loading, name="herdbook-warm", daemon=False).start()


def embedding(service: Service, tenant: int) -> dict[str, Any] | str:
    """For `status`: how far embedding has come, the `problem` with the embedder that was chosen, or why there is none."""
    meanings = service.briefer.orderer.semantics
    if not isinstance(meanings, Embedding):
        return meanings if meanings in (OFF, NO_EMBEDDER) else {"problem": str(meanings)}
    try:
        return meanings.state(tenant)
    except (HerdbookError, ImportError, OSError) as problem:
        return {"problem": str(problem)}
