"""A Cloud Run service's revisions and its entries in Cloud Logging, with a viewer's token that only the gateway has.

`latestCreatedRevision` that is not `latestReadyRevision`, while the service reconciles, is a new revision that does not serve
yet: what a cold start looks like to a machine, whatever `/health` says.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.moments import iso_of, seconds_of
from herdbook.watch.sources.protocol import LINES_PER_PAGE, Page
from herdbook.watch.sources.web import Web, segment

if TYPE_CHECKING:
    from collections.abc import Mapping


OVERLAP_SECONDS = 30.0  # entries arrive out of order: what is that old is asked for again, and known by its insert id


class CloudRunSource:
    """`project`, `location`, `service`; connections `run` and `logging`. A cursor is a time, with a page's token after it."""

    def __init__(self, run: Web, logging: Web, options: Mapping[str, str]) -> None:
        self.run, self.logging = run, logging
        self.project, self.location, self.service = options["project"], options["location"], options["service"]
        self.seen: set[str] = set()  # insert ids

    def tail(self, service: str, since: str) -> Page:
        moment, _, token = since.partition(" ")
        of_service = f'resource.type="cloud_run_revision" resource.labels.service_name="{self.service}"'
        wanted = f'{of_service} timestamp>="{iso_of(float(moment))}"'
        asked = {
            "resourceNames": [f"projects/{self.project}"],
            "filter": wanted,
            "orderBy": "timestamp asc",
            "pageSize": LINES_PER_PAGE,
            **({"pageToken": token} if token else {}),
        }
        found = self.logging.json("POST", "/v2/entries:list", asked)
        entries = [each for each in found.get("entries", []) if str(each.get("insertId")) not in self.seen]
        self.seen |= {str(each.get("insertId")) for each in entries}
        lines = tuple(line_of(each) for each in entries)
        following = found.get("nextPageToken")  # an empty page may have one
        if following:
            return Page(lines, f"{moment} {following}", more=True)
        last = max((line.at for line in lines), default=0.0) - OVERLAP_SECONDS
        return Page(lines, repr(max(last, float(moment))))

    def revision_state(self, service: str) -> RevisionState:
        parts = ("projects", self.project, "locations", self.location, "services", self.service)
        found = self.run.json("GET", "/v2/" + "/".join(map(segment, parts)))
        newest, ready = short(found.get("latestCreatedRevision")), short(found.get("latestReadyRevision"))
        serving = [each for each in found.get("trafficStatuses") or [] if int(each.get("percent") or 0) > 0]
        names = [short(each.get("revision")) or ready for each in serving] or [ready]
        pending = newest != ready
        failed = (found.get("terminalCondition") or {}).get("state") == "CONDITION_FAILED"
        is_ready = False if pending and failed else None if pending else True
        return RevisionState(
            serving=", ".join(names),
            newest=newest,
            newest_ready=is_ready,
            old_serves=pending and bool(ready) and ready in names,
            detail=str((found.get("terminalCondition") or {}).get("message") or ""),
        )


def line_of(entry: dict[str, Any]) -> Line:
    """Text, JSON with a message, or the request that it is about."""
    payload = entry.get("jsonPayload") or {}
    text = entry.get("textPayload") or payload.get("message") or payload.get("msg")
    text = text or ((entry.get("protoPayload") or {}).get("status") or {}).get("message") or (payload and json.dumps(payload))
    request = entry.get("httpRequest")
    if not text and request:
        text = f"{request.get('requestMethod', '')} {request.get('requestUrl', '')} {request.get('status', '')}"
    level = entry.get("severity", "DEFAULT")
    shown = str(text or "") if level == "DEFAULT" else f"{level} {text or ''}"
    labels = (entry.get("resource") or {}).get("labels") or {}
    return Line(shown, seconds_of(str(entry.get("timestamp") or "")), str(labels.get("revision_name", "")))


def short(name: object) -> str:
    """A revision's own name, without the project it is in."""
    return str(name or "").rpartition("/")[2]
