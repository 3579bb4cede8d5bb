"""What each sender says, in our words: a deploy, or alerts that fire. Pure.

A sender has confirmed its alert already, so a firing one is not argued with; what says that all is well again, or that there is
no data, is acknowledged and leads to nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from herdbook.base.errors import InvalidRequest

SHA: Final = re.compile(r"[0-9a-f]{12,64}")
SHA_CHARS: Final = 12
COMPONENT_CHARS_MAX: Final = 64
TITLE_CHARS_MAX: Final = 500
COMPONENT_LABELS: Final = ("component", "service", "service_name", "app", "job", "alertname")
NO_DATA: Final = ("DatasourceNoData", "DatasourceError")
STARTED_CHARS_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployHook:
    """A release: from and to, in every repository it is made of."""

    repositories: Mapping[str, Mapping[str, str]]  # {"acme/app": {"before": sha, "after": sha}}
    services: tuple[str, ...]
    again: bool = False

    def body(self) -> dict[str, Any]:
        return {"kind": "deploy", "repositories": dict(self.repositories), "services": list(self.services)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing that its sender says is wrong."""

    component: str
    title: str
    source: str
    delivery: str | None = None  # what makes a second delivery of it the same
    started_at: str = ""
    link: str = ""
    again: bool = False

    def body(self) -> dict[str, Any]:
        return {"kind": "alert", **asdict(self)}


def deploy(payload: Any) -> DeployHook:
    """`{"repositories": {"owner/name": {"before", "after"}}, "services": [...]}`."""
    body = a_table(payload)
    repositories = {}
    for name, shas in a_table(body.get("repositories")).items():
        told = a_table(shas)
        wrong = [end for end in ("before", "after") if not SHA.fullmatch(str(told.get(end, "")))]
        if wrong or not re.fullmatch(r"[\w.-]{1,100}/[\w.-]{1,100}", name):
            raise InvalidRequest(f"repositories.{name[:60]} needs `before` and `after`, each a commit's sha")
        repositories[name] = {end: str(told[end]) for end in ("before", "after")}
    services = body.get("services", [])
    if not repositories or not isinstance(services, list) or not all(isinstance(each, str) for each in services):
        raise InvalidRequest("a deploy names its `repositories` and, as texts, its `services`")
    return DeployHook(repositories=repositories, services=tuple(services), again=body.get("investigate_again") is True)


def statuspage(payload: Any) -> list[Alert]:
    """A component that changed, or an incident with its components."""
    body = a_table(payload)
    incident = body.get("incident")
    if isinstance(incident, dict):
        if incident.get("status") in ("resolved", "postmortem", "completed"):
            return []
        parts = incident.get("components")
        names = [each.get("name") for each in (parts if isinstance(parts, list) else []) if isinstance(each, dict)]
        title, number = incident.get("name"), incident.get("id")
        names = names or [title]
    else:
        update, component = a_table(body.get("component_update") or {}), a_table(body.get("component"))
        if (update.get("new_status") or component.get("status")) in ("operational", "under_maintenance"):
            return []
        names, number = [component.get("name")], update.get("id")
        title = f"{component.get('name')} is {update.get('new_status') or component.get('status')}"
    return [alert("statuspage", name, title, delivery=number and f"{number}/{name}") for name in names]


def google(payload: Any) -> list[Alert]:
    """Cloud Monitoring's webhook, version 1.2."""
    incident = a_table(a_table(payload).get("incident"))
    condition = incident.get("condition")
    if incident.get("state") != "open" or (isinstance(condition, dict) and "conditionAbsent" in condition):
        return []
    name = labelled(maybe_table(maybe_table(incident.get("resource")).get("labels"))) or incident.get("policy_name")
    return [
        alert(
            "google",
            name,
            incident.get("summary") or incident.get("policy_name"),
            delivery=incident.get("incident_id"),
            started_at=incident.get("started_at"),
            link=incident.get("url"),
        )
    ]


def alertmanager(payload: Any, source: str = "alertmanager") -> list[Alert]:
    """Version 4, of Alertmanager and of Grafana: only what fires, and not for want of data."""
    alerts = a_table(payload).get("alerts")
    if not isinstance(alerts, list):
        raise InvalidRequest("this is no Alertmanager webhook: it has no `alerts`")
    found = []
    for each in map(a_table, alerts):
        labels, annotations = maybe_table(each.get("labels")), maybe_table(each.get("annotations"))
        if each.get("status") != "firing" or labels.get("alertname") in NO_DATA or labels.get("grafana_state_reason") == "NoData":
            continue
        found.append(
            alert(
                source,
                labelled(labels),
                annotations.get("summary") or annotations.get("description") or labels.get("alertname"),
                delivery=f"{each.get('fingerprint')}@{each.get('startsAt')}" if each.get("fingerprint") else None,
                started_at=each.get("startsAt"),
                link=each.get("generatorURL"),
                again=str(labels.get("investigate_again", "")).lower() == "true",
            )
        )
    return found


def grafana(payload: Any) -> list[Alert]:
    return alertmanager(payload, "grafana")


def pagerduty(payload: Any) -> list[Alert]:
    """Webhooks version 3: an incident that was triggered; everything else about it is news."""
    event = a_table(a_table(payload).get("event"))
    if event.get("event_type") not in ("incident.triggered", "incident.reopened"):
        return []
    data = a_table(event.get("data"))
    service = maybe_table(data.get("service"))
    return [
        alert(
            "pagerduty",
            service.get("summary") or data.get("title"),
            data.get("title"),
            delivery=event.get("id"),
            started_at=event.get("occurred_at"),
            link=data.get("html_url"),
        )
    ]


def generic(payload: Any) -> list[Alert]:
    """`{"component", "title", "status": "firing" | "resolved" | "no_data", "id", "investigate_again"}`."""
    body = a_table(payload)
    if body.get("status", "firing") != "firing":
        return []
    number = body.get("id")
    return [
        alert("generic", body.get("component"), body.get("title"), delivery=number, again=body.get("investigate_again") is True)
    ]


PARSERS: Final[Mapping[str, Callable[[Any], list[Alert]]]] = {
    "statuspage": statuspage,
    "google": google,
    "alertmanager": alertmanager,
    "grafana": grafana,
    "pagerduty": pagerduty,
    "generic": generic,
}


def alert(
    source: str, component: Any, title: Any, *, delivery: Any = None, link: Any = "", started_at: Any = "", again: bool = False
) -> Alert:
    """One alert of bounded texts. The delivery is digested: senders' ids are of any length and any characters."""
    name = slug(component)
    if not name:
        raise InvalidRequest(f"this {source} alert names no component: label it with one of {', '.join(COMPONENT_LABELS)}")
    return Alert(
        component=name,
        title=plain_text(title) or name,
        source=source,
        delivery=digest(source, str(delivery)) if delivery else None,
        started_at=plain_text(started_at)[:STARTED_CHARS_MAX],
        link=plain_text(link) if str(link or "").startswith(("https://", "http://")) else "",
        again=again,
    )


def digest(*parts: str) -> str:
    """What makes two deliveries the same one."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:40]


def labelled(labels: dict[str, Any]) -> str:
    return next((said for said in map(text_of, map(labels.get, COMPONENT_LABELS)) if said), "")


def maybe_table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def slug(text: Any) -> str:
    """A name that is one part of a key, whatever it was called."""
    said = text_of(text)
    name = re.sub(r"[^a-z0-9._]+", "-", said.lower()).strip("-.")[:COMPONENT_CHARS_MAX]
    if name or not any(each.isalnum() for each in said):
        return name
    return f"component-{hashlib.sha256(said.encode(errors='surrogatepass')).hexdigest()[:12]}"  # named in another script


def text_of(value: Any) -> str:
    """A text or a number as a text; a table, a list or nothing names nothing."""
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def plain_text(text: Any) -> str:
    return "".join(each if each.isprintable() else " " for each in text_of(text)[:TITLE_CHARS_MAX]).strip()


def a_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest("this is not the JSON that this hook sends: look at its page in the documentation")
    return value
