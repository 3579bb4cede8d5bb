"""A deployment's events and its pods' logs, from the Kubernetes API."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.moments import iso_of, seconds_of
from herdbook.watch.sources.protocol import Page, Unreadable, page_of
from herdbook.watch.sources.web import Web, segment

if TYPE_CHECKING:
    from collections.abc import Mapping

PODS_MAX = 20
LOG_BYTES_MAX = 1024 * 1024
CUT_BYTES = 16 * 1024  # an answer may be somewhat shorter than the limit, and end within a line


class KubernetesSource:
    """`namespace`, `selector`, `deployment`, and optionally `container`. A cursor is the last line's time."""

    def __init__(self, web: Web, options: Mapping[str, str]) -> None:
        self.web, self.namespace = web, f"/namespaces/{segment(options.get('namespace', 'default'))}"
        self.selector, self.deployment = options.get("selector", ""), options["deployment"]
        self.container = options.get("container", "")

    def tail(self, service: str, since: str) -> Page:
        after = float(since)
        pods = self.web.json(
            "GET", f"/api/v1{self.namespace}/pods", query={"labelSelector": self.selector} if self.selector else None
        )
        names = [str(pod["metadata"]["name"]) for pod in pods.get("items", [])][:PODS_MAX]
        logs = [self.logs(name, after) for name in names]
        # A pod whose log was cut goes on later: what others logged after the cut waits for it.
        until = min((lines[-1].at for lines, cut in logs if cut and lines), default=math.inf)
        until = until if until > after else math.inf
        told = [*self.events({*names, self.deployment}), *(line for lines, _ in logs for line in lines)]
        fresh = sorted((line for line in told if after < line.at <= until), key=lambda line: line.at)
        page = page_of(fresh, since)
        return Page(page.lines, page.next, page.more or (bool(fresh) and until < math.inf))

    def events(self, names: set[str]) -> list[Line]:
        found = self.web.json("GET", f"/api/v1{self.namespace}/events").get("items", [])
        return [event_line(each) for each in found if is_about(each, names)]

    def logs(self, pod: str, after: float) -> tuple[list[Line], bool]:
        """A pod's lines, and whether there were more than one answer holds."""
        query = {"timestamps": "true", "sinceTime": iso_of(after), "limitBytes": str(LOG_BYTES_MAX)}
        if self.container:
            query["container"] = self.container
        status, data = self.web.ask("GET", f"/api/v1{self.namespace}/pods/{segment(pod)}/log", query=query)
        if status == 400:  # the container has not begun yet: its events say why
            return [], False
        if status != 200:
            raise Unreadable(f"the log of the pod {pod} answered {status}")
        cut = len(data) >= LOG_BYTES_MAX - CUT_BYTES
        whole = data[: data.rfind(b"\n") + 1] if cut else data
        told = [text.partition(" ") for text in whole.decode("utf-8", "replace").split("\n") if text]
        return [Line(text, seconds_of(when), pod) for when, _, text in told], cut

    def revision_state(self, service: str) -> RevisionState:
        path = f"/apis/apps/v1{self.namespace}/deployments/{segment(self.deployment)}"
        found = self.web.json("GET", path)
        spec, status = found.get("spec") or {}, found.get("status") or {}
        wanted, updated = int(spec.get("replicas", 1)), int(status.get("updatedReplicas", 0))
        available, total = int(status.get("availableReplicas", 0)), int(status.get("replicas", 0))
        seen = status.get("observedGeneration") == (found.get("metadata") or {}).get("generation")
        ready = seen and updated >= wanted and available >= wanted and total == updated
        conditions = [
            f"{each.get('type')}={each.get('status')} {each.get('reason', '')}" for each in status.get("conditions") or []
        ]
        revision = ((found.get("metadata") or {}).get("annotations") or {}).get("deployment.kubernetes.io/revision", "")
        return RevisionState(
            serving=revision if ready else "",
            newest=revision,
            newest_ready=ready,
            old_serves=available > 0 and not ready,
            detail="; ".join(conditions),
        )


def is_about(event: dict[str, Any], names: set[str]) -> bool:
    name = str((event.get("involvedObject") or {}).get("name", ""))
    return name in names or any(name.startswith(f"{each}-") for each in names)


def event_line(event: dict[str, Any]) -> Line:
    series = event.get("series") or {}  # what repeats, as newer clusters count it
    when = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or (event.get("metadata") or {}).get("creationTimestamp")
        or ""
    )
    name = (event.get("involvedObject") or {}).get("name", "")
    return Line(f"{event.get('type')} {event.get('reason')} {name}: {event.get('message')}", seconds_of(str(when)))
