"""What the server counts about itself, as Prometheus text. Only the event loop's thread touches it, so nothing locks.

It counts requests, never the record: a scrape costs the same whatever is stored. Labels are verbs, page names, statuses and
error codes, never anything a caller can choose.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from herdbook.base.errors import HerdbookError
from herdbook.base.exposition import SECONDS, Histogram, metric
from herdbook.base.version import VERSION

SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
NAMES: Final = (
    "herdbook_build_info",
    "herdbook_requests_total",
    "herdbook_errors_total",
    "herdbook_request_seconds",
    "herdbook_batch_requests",
    "herdbook_waiting_requests",
    "process_start_time_seconds",
)
NO_VERB: Final = "none"  # refused before an address was known


class Metrics:
    """All counters of one server."""

    def __init__(self) -> None:
        self.started = time.time()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.errors: Counter[str] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.batches = Histogram(SIZES)

    def answered(self, verb: str, *, status: int, code: str | None, seconds: float) -> None:
        self.requests[verb, status] += 1
        if code is not None:
            self.errors[code] += 1
        histogram = self.seconds.get(verb)
        if histogram is None:
            histogram = self.seconds[verb] = Histogram(SECONDS)
        histogram.observe(seconds)

    def refused(self, error: HerdbookError) -> None:
        """The edge refused something that never became a request."""
        self.requests[NO_VERB, error.status] += 1
        self.errors[error.code] += 1

    def batch(self, size: int) -> None:
        self.batches.observe(size)

    def text(self, *, waiting: int) -> str:
        """The exposition format, every metric with its help and type."""
        families = [
            metric("herdbook_build_info", "gauge", "The version that runs.", [f'herdbook_build_info{{version="{VERSION}"}} 1']),
            metric(
                "herdbook_requests_total",
                "counter",
                "Requests answered, by verb or page and by HTTP status.",
                [f'herdbook_requests_total{{verb="{v}",status="{s}"}} {n}' for (v, s), n in sorted(self.requests.items())],
            ),
            metric(
                "herdbook_errors_total",
                "counter",
                "Errors answered, by code.",
                [f'herdbook_errors_total{{code="{code}"}} {n}' for code, n in sorted(self.errors.items())],
            ),
            metric(
                "herdbook_request_seconds",
                "histogram",
                "Time from whole headers to the answer, by verb or page.",
                [
                    line
                    for verb, h in sorted(self.seconds.items())
                    for line in h.lines("herdbook_request_seconds", f'verb="{verb}"')
                ],
            ),
            metric(
                "herdbook_batch_requests",
                "histogram",
                "Requests committed together.",
                self.batches.lines("herdbook_batch_requests"),
            ),
            metric(
                "herdbook_waiting_requests",
                "gauge",
                "Requests accepted and not yet committed.",
                [f"herdbook_waiting_requests {waiting}"],
            ),
            metric(
                "process_start_time_seconds",
                "gauge",
                "When this process began, in seconds since 1970.",
                [f"process_start_time_seconds {self.started:.3f}"],
            ),
        ]
        return "\n".join(families) + "\n"
