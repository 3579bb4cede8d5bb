"""The application: `/v1/gateway/{connection}/{path}` for boxes, `/v1/gateway` to see what one may call, `/healthz`.

Every call is let in, judged and written down before it goes out. A refusal has the one error shape and the header
`X-Herdbook-Refused`, so that it is never mistaken for an answer of the service behind.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from functools import partial
from hmac import compare_digest
from typing import Any, Final, cast

import msgspec
from starlette.types import Receive, Scope, Send

from herdbook.base import clock, limits
from herdbook.base.errors import Busy, HerdbookError, NotFound, Unauthorized
from herdbook.base.http_edge import Internal, MethodNotAllowed
from herdbook.base.ids import new_name
from herdbook.gateway import policy, proxy
from herdbook.gateway.audit import Audit
from herdbook.gateway.budget import Ledger
from herdbook.gateway.catalogue import Catalogue, Ready
from herdbook.gateway.credentials.minting import Tools
from herdbook.gateway.headers import framing
from herdbook.gateway.identity import Door, Identity, LiveBoxes, PassDoor, SocketDoor, digest_of, shown
from herdbook.gateway.metrics import GatewayMetrics
from herdbook.gateway.paths import canonical
from herdbook.gateway.upstream import Upstream
from herdbook.gateway.vault import Vault

LOG = logging.getLogger("herdbook.gateway")
PREFIX: Final = b"/v1/gateway"
CLAIM: Final = b"/boxes/"
DOOR: Final = "gateway_door"  # what a listener's state has its door under
METRICS_KEY: Final = "gateway_metrics_key"


class GatewayApp:
    """The ASGI application over one vault. It lives on one event loop."""

    def __init__(self, vault: Vault, audit: Audit, boxes: LiveBoxes, *, upstream: Upstream | None = None) -> None:
        self.audit, self.boxes = audit, boxes
        self.upstream = upstream or Upstream()
        self.catalogue = Catalogue(vault, self.tools)
        self.under_way: Counter[str] = Counter()
        self.ledger = Ledger()
        self.metrics = GatewayMetrics()

    async def close(self) -> None:
        await self.upstream.close()
        await self.audit.close()
        self.boxes.close()

    def tools(self, connection: str) -> Tools:
        return Tools(self.upstream.ask, self.boxes.verb, self.boxes.clock, partial(self.minted, connection))

    def minted(self, connection: str, box: str, expires_at: int) -> None:
        """A credential was made that did not exist before: which box's call it was for, and until when it is good."""
        until = clock.iso(expires_at)
        self.audit.write("minted", new_name("mint"), box=box, connection=connection, expires_at=until)

    def socket_state(self, box: str) -> dict[str, Any]:
        """What the listener on a box's own socket has to carry."""
        return {DOOR: SocketDoor(box, self.boxes)}

    def open_state(self, *, key: str | None = None, connector: str | None = None) -> dict[str, Any]:
        """What a listener that anybody may reach has to carry. Without a key nobody sees the metrics."""
        return {DOOR: PassDoor(self.boxes, digest_of(connector)), METRICS_KEY: digest_of(key)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(self, scope, receive, send)
        try:
            await call.handle()
        except proxy.ClientGone:
            call.end("hung_up")
        except proxy.BrokenOff as cut:
            why = {"code": cut.__cause__.code} if isinstance(cut.__cause__, HerdbookError) else {}
            call.end("broken_off", **why)  # nothing more is sent, and so the edge cuts the connection
        except HerdbookError as refusal:
            await call.refuse(refusal)
        except Exception:  # because a box is owed an answer, and never a traceback
            LOG.exception("%s failed", call.id)
            await call.refuse(Internal())


class Call:
    """One request, from its address to its last line in the audit."""

    def __init__(self, app: GatewayApp, scope: Scope, receive: Receive, send: Send) -> None:
        self.app, self.scope, self.receive, self.send = app, scope, receive, send
        self.id = new_name("call")
        self.started = time.perf_counter()
        self.about: dict[str, Any] = {}
        self.relay: proxy.Relay | None = None

    async def handle(self) -> None:
        raw, method = self.scope["raw_path"], self.scope["method"]
        if raw == b"/healthz":
            await self.answer(200, {"alive": True})
            return
        if raw == b"/metrics":
            await self.show_metrics()
            return
        claimed, raw = claim(raw)
        name, rest = split(raw)
        identity = await cast(Door, self.scope["state"][DOOR]).admit(self.scope["headers"], claimed)
        self.about = {"box": identity.box, "label": identity.label, "via": identity.via}
        if name is not None:
            await self.forward(identity, name, rest, method)
        elif method != "GET":
            raise MethodNotAllowed("this address takes GET: it lists what this box may call")
        else:
            await self.answer(200, {"connections": [described(each) for each in self.granted(identity)]})

    async def forward(self, identity: Identity, name: str, rest: bytes, method: str) -> None:
        ready = self.reachable(identity, name)
        self.about |= {"connection": name, "method": method if method in policy.METHODS else "other"}
        if method not in policy.METHODS:
            raise MethodNotAllowed(f"the gateway forwards {', '.join(policy.METHODS)}")
        path = canonical(rest)
        self.about["path"] = path.text
        self.about["rule"] = str(policy.decide(ready.connection.rules, method, path))
        headers = list(self.scope["headers"])
        account = self.app.ledger.account(identity.box, name, ready.connection.budget)
        body = proxy.Body(self.receive, expected=bool(framing(headers)), account=account)
        self.relay = proxy.Relay(
            ready, identity.box, method, path, self.scope["query_string"], headers, body, self.send, self.id,
            still_open=lambda: self.is_open(identity, name),
        )  # fmt: skip
        if self.app.under_way[identity.box] >= limits.GATEWAY_CALLS_MAX:
            raise Busy(f"this box has {limits.GATEWAY_CALLS_MAX} calls under way already: wait for one of them")
        account.call()
        self.app.under_way[identity.box] += 1
        try:
            self.app.audit.write("sent", self.id, **self.about)
            await proxy.while_wanted(body, self.relay.run(self.app.upstream))
        finally:
            self.app.under_way[identity.box] -= 1
            if not self.app.under_way[identity.box]:
                del self.app.under_way[identity.box]
        self.end("answered")

    def reachable(self, identity: Identity, name: str) -> Ready:
        """A connection this box was granted; one that is not there, not granted or revoked looks the same."""
        try:
            ready = self.app.catalogue.get(name)
        except NotFound:
            ready = None
        if ready is None or not identity.covers(name) or not ready.connection.granted(box=identity.box, label=identity.label):
            self.about["connection"] = name[:64]
            raise policy.NotGranted
        return ready

    def is_open(self, identity: Identity, name: str) -> bool:
        try:
            return self.app.catalogue.get(name).connection.granted(box=identity.box, label=identity.label)
        except HerdbookError:
            return False

    def granted(self, identity: Identity) -> list[Ready]:
        found = [self.app.catalogue.get(name) for name in self.app.catalogue.names() if identity.covers(name)]
        return [each for each in found if each.connection.granted(box=identity.box, label=identity.label)]

    async def show_metrics(self) -> None:
        """For whoever shows the server's key: a box must not learn what others call."""
        wanted, given = self.scope["state"].get(METRICS_KEY), shown(self.scope["headers"])
        if wanted is None or given is None or not compare_digest(digest_of(given) or b"", wanted):
            raise Unauthorized("the metrics need the server's key: set HERDBOOK_KEY where it is served and where it is asked")
        text = self.app.metrics.text(under_way=self.app.under_way.total()).encode()
        await self.answer(200, text, kind=b"text/plain; version=0.0.4; charset=utf-8")

    def end(self, event: str, **more: Any) -> None:
        relay, seconds = self.relay, time.perf_counter() - self.started
        if relay is not None:
            self.app.metrics.ended(
                self.about["connection"], relay.status, seconds=seconds, sent=relay.body.size, received=relay.bytes_out,
                redacted=relay.redacted,
            )  # fmt: skip
            more |= {"status": relay.status or None, "bytes_in": relay.body.size, "bytes_out": relay.bytes_out}
            more |= {"redacted": relay.redacted} if relay.redacted else {}
        self.app.audit.write(event, self.id, **self.about, **more, milliseconds=round(seconds * 1000, 1))

    async def refuse(self, error: HerdbookError) -> None:
        if self.relay is not None and self.relay.status:
            LOG.warning("%s was cut: %s", self.id, error.code)
            return
        self.app.metrics.refused[error.code] += 1
        try:
            self.end("refused", code=error.code, answer=error.status)
        except HerdbookError as unwritten:
            error = unwritten
        await self.answer(error.status, error.as_dict(), refused=error)

    async def answer(
        self, status: int, body: Any, *, refused: HerdbookError | None = None, kind: bytes = b"application/json"
    ) -> None:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = [
            (b"content-type", kind), (b"content-length", str(len(data)).encode()), (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"), (b"x-herdbook-call", self.id.encode()),
        ]  # fmt: skip
        if refused is not None:
            headers += [(b"x-herdbook-refused", refused.code.encode()), *([(b"retry-after", b"1")] if refused.retry else [])]
            headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else data})


def claim(raw: bytes) -> tuple[str | None, bytes]:
    """The box that an address claims to be, as `/boxes/BOX` before the rest, and the rest."""
    if not raw.startswith(CLAIM):
        return None, raw
    box, slash, rest = raw[len(CLAIM) :].partition(b"/")
    return canonical(b"/" + box).text[1:], slash + rest


def split(raw: bytes) -> tuple[str | None, bytes]:
    """The connection's name and the path behind it; no name for the list of connections."""
    if raw.rstrip(b"/") == PREFIX:
        return None, b""
    if not raw.startswith(PREFIX + b"/"):
        raise NotFound("there is nothing at this address: calls go to /v1/gateway/<connection>/<path>")
    name, _, rest = raw[len(PREFIX) + 1 :].partition(b"/")
    return name.decode("latin-1"), b"/" + rest


def described(ready: Ready) -> dict[str, Any]:
    """What a box may know of a connection it was granted."""
    connection = ready.connection
    rules = [str(each) for each in connection.rules]
    return {
        "connection": connection.name,
        "base_path": f"/v1/gateway/{connection.name}",
        "service": ready.target.origin,
        "rules": rules,
        "budget": msgspec.to_builtins(connection.budget),
    }
