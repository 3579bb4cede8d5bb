"""What the server counts about itself, as Prometheus text. Only the event loop's thread touches it, so nothing locks.

It counts requests, never the record: a scrape costs the same whatever is stored. Labels are verbs, page names, statuses and
error codes, never anything a caller can choose.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from herdbook.base.errors import HerdbookError
from herdbook.base.version import VERSION

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
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


class Histogram:
    """Counts by upper bound, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            limit = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f'{name}_bucket{{{labels}{"," if labels else ""}le="{limit}"}} {total}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self.sum:.6f}"
        yield f"{name}_count{braces} {total}"


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


def metric(name: str, kind: str, meaning: str, samples: Iterable[str]) -> str:
    return "\n".join([f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *samples])
