"""What the service knows of the semantic leg: how far its vectors have come, or why there are none."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from herdbook.base.errors import HerdbookError
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
    """How far embedding has come, or why there is none: for `status`."""
    meanings = service.briefer.orderer.semantics
    if not isinstance(meanings, Embedding):
        return str(meanings)
    try:
        return meanings.state(tenant)
    except (HerdbookError, ImportError, OSError) as problem:
        return f"the embedder cannot be used: {problem}"
