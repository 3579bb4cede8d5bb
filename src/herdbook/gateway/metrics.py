"""What the gateway counts about itself. Labels are connections that were granted, classes of statuses and error codes."""

from __future__ import annotations

from collections import Counter

from herdbook.base.exposition import SECONDS, Histogram, metric


class GatewayMetrics:
    """All counters of one gateway; only its event loop touches them."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.redacted = 0
        self.seconds = Histogram((*SECONDS, 30.0, 300.0))

    def ended(self, connection: str, status: int, *, seconds: float, sent: int, received: int, redacted: int) -> None:
        """A call that went out, however it ended; status 0 is one that was never answered."""
        self.calls[connection, f"{status // 100}xx" if status else "none"] += 1
        self.bytes["to_service"] += sent
        self.bytes["to_box"] += received
        self.redacted += redacted
        self.seconds.observe(seconds)

    def text(self, *, under_way: int) -> str:
        calls = [f'herdbook_gateway_calls_total{{connection="{c}",status="{s}"}} {n}' for (c, s), n in sorted(self.calls.items())]
        refused = [f'herdbook_gateway_refused_total{{code="{code}"}} {n}' for code, n in sorted(self.refused.items())]
        moved = [f'herdbook_gateway_bytes_total{{direction="{way}"}} {n}' for way, n in sorted(self.bytes.items())]
        families = [
            metric("herdbook_gateway_calls_total", "counter", "Calls that went out, by connection and class of status.", calls),
            metric("herdbook_gateway_refused_total", "counter", "Calls the gateway refused itself, by error code.", refused),
            metric("herdbook_gateway_bytes_total", "counter", "Bytes of bodies passed on, by direction.", moved),
            metric(
                "herdbook_gateway_redacted_total",
                "counter",
                "Times a credential came back and was overwritten.",
                [f"herdbook_gateway_redacted_total {self.redacted}"],
            ),
            metric(
                "herdbook_gateway_call_seconds",
                "histogram",
                "Time from whole headers to the end of the answer, the service's own included.",
                self.seconds.lines("herdbook_gateway_call_seconds"),
            ),
            metric(
                "herdbook_gateway_calls_under_way",
                "gauge",
                "Calls that have not ended.",
                [f"herdbook_gateway_calls_under_way {under_way}"],
            ),
        ]
        return "\n".join(families) + "\n"
