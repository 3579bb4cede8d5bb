"""Opening the gateway of these settings: its vault for those who look after it, its application for those who serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from herdbook.base import limits
from herdbook.base.clock import Clock, SystemClock
from herdbook.base.http_edge import EdgeLimits
from herdbook.base.settings import Settings
from herdbook.gateway.app import GatewayApp
from herdbook.gateway.audit import Audit
from herdbook.gateway.identity import Call, LiveBoxes
from herdbook.gateway.keeper import FileKeeper
from herdbook.gateway.vault import Vault

# A box may send more through the gateway than to the record, since nothing of it is kept.
LIMITS: Final = EdgeLimits(body_bytes=limits.GATEWAY_BODY_BYTES_MAX)


def audit_folder(settings: Settings) -> Path:
    return settings.gateway / "audit"


def open_vault(settings: Settings) -> Vault:
    return Vault(settings.gateway / "connections", FileKeeper(settings.gateway_key_file))


def open_app(settings: Settings, call: Call, *, clock: Clock | None = None) -> GatewayApp:
    """`call` asks the record as one who may see its boxes."""
    source = clock or SystemClock()
    return GatewayApp(open_vault(settings), Audit(audit_folder(settings), source), LiveBoxes(call, source))
