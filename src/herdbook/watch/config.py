"""watch.toml as a value: what is watched, where its logs are, which connections lead out. Names of secrets, never a secret."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from herdbook.base import files
from herdbook.base.errors import InvalidRequest, NotFound

FILE_BYTES_MAX: Final = 256 * 1024
SOURCES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {  # the lines that each needs, and may have
    "file": (("path",), ("state",)),
    "journald": (("unit",), ("program",)),
    "docker": (("container",), ("docker",)),
    "kubernetes": (("connection", "deployment"), ("namespace", "selector", "container")),
    "loki": (("connection", "query"), ()),
    "cloud_run": (("run", "logging", "project", "location", "service"), ()),
}
HOOKS: Final = ("deploy", "statuspage", "google", "alertmanager", "grafana", "pagerduty", "generic")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
}
REPOSITORY: Final = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """How a deploy is told, and how long it is watched."""

    repository: str = ""  # the one that tags the image
    source: str = ""  # a second one that the image is built from
    named_by: str = "repository"  # whose commit is the deploy's name: repository or source
    promotion: str = r"^Promote to main"  # titles of commits that carry pull requests
    base: str = "main"  # what a draft is to be merged into
    watch_seconds: float = 540
    budget_seconds: int = 900
    poll_seconds: float = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service, and where its logs are."""

    name: str
    source: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudTasks:
    """A queue of Google's between dispatcher and worker."""

    queue: str  # projects/P/locations/L/queues/Q
    execute_url: str
    service_account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All of it."""

    org: str
    directory: Path
    gates: Path | None = None
    agent: tuple[
        str, ...
    ] = ()  # a command in the box that writes the diagnosis and a diff; without one the record's fix is drafted
    deploy: Deploy = field(default_factory=Deploy)
    hooks: Mapping[str, str] = field(default_factory=dict)  # from a hook to the environment variable with its secret
    services: Mapping[str, Service] = field(default_factory=dict)
    cloud_tasks: CloudTasks | None = None
    connections: Mapping[str, str] = field(default_factory=dict)  # github, drafts, slack, model: the gateway's name for each

    @property
    def entity(self) -> str:
        """What is briefed before anything else, and where everything is written."""
        return f"{self.org}/deploy"

    @property
    def naming_repository(self) -> str:
        return self.deploy.source if self.deploy.named_by == "source" else self.deploy.repository


def load(path: Path) -> Config:
    """Read and check. Raises InvalidRequest that names what is wrong."""
    try:
        found = tomllib.loads(files.read_text(path, what="the watcher's settings", bytes_max=FILE_BYTES_MAX))
    except NotFound as problem:
        raise InvalidRequest(f"there is no {path}: write one with `herdbook watch init`") from problem
    except ValueError as problem:
        raise InvalidRequest(f"{path} cannot be read: {problem}") from problem
    return parsed(found, path.parent)


def parsed(found: dict[str, Any], directory: Path) -> Config:
    refuse_unknown("watch.toml", found, {"org", "gates", "agent", "deploy", "hooks", "services", "connections", "cloud_tasks"})
    if not isinstance(found.get("org"), str) or not NAME.fullmatch(found["org"]):
        raise InvalidRequest("watch.toml needs `org`, a name: <org>/deploy is briefed before a log is opened")
    agent, gates = found.get("agent", []), found.get("gates")
    if not isinstance(agent, str) and not (isinstance(agent, list) and all(isinstance(each, str) for each in agent)):
        raise InvalidRequest("`agent` must be a command: text, or a list of texts")
    if gates is not None and not isinstance(gates, str):
        raise InvalidRequest("`gates` must be text: the path of gates.py, beside this file")
    return Config(
        org=found["org"],
        directory=directory,
        gates=None if gates is None else directory / gates,
        agent=tuple(agent.split() if isinstance(agent, str) else agent),
        deploy=parsed_deploy(a_table(found, "deploy")),
        hooks=texts("hooks", a_table(found, "hooks"), HOOKS),
        services={name: parsed_service(name, options) for name, options in a_table(found, "services").items()},
        cloud_tasks=parsed_tasks(a_table(found, "cloud_tasks")) if "cloud_tasks" in found else None,
        connections=texts("connections", a_table(found, "connections"), ("github", "drafts", "slack", "model")),
    )


def parsed_deploy(found: dict[str, Any]) -> Deploy:
    refuse_unknown("[deploy]", found, {each.name for each in fields(Deploy)})
    for each in fields(Deploy):
        value = found.get(each.name, each.default)
        kinds, called = KINDS[str(each.type)]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise InvalidRequest(f"[deploy] {each.name} must be {called}, as {each.default!r} is")
    deploy = Deploy(**found)
    if not deploy.poll_seconds > 0:
        raise InvalidRequest("[deploy] poll_seconds must be above 0")
    for name in ("repository", "source"):
        value = getattr(deploy, name)
        if value and not REPOSITORY.fullmatch(value):
            raise InvalidRequest(f"[deploy] {name} must be owner/name, not {value!r}")
    if deploy.named_by not in ("repository", "source"):
        raise InvalidRequest("[deploy] named_by must be repository or source: whose commit tags the image")
    if not 0 < deploy.watch_seconds < deploy.budget_seconds:
        raise InvalidRequest("[deploy] watch_seconds must be above 0 and leave room within budget_seconds, as 540 of 900 do")
    try:
        re.compile(deploy.promotion)
    except re.error as problem:
        raise InvalidRequest(f"[deploy] promotion is not a pattern: {problem}") from problem
    return deploy


def parsed_tasks(found: dict[str, Any]) -> CloudTasks:
    needed = tuple(each.name for each in fields(CloudTasks))
    told = texts("cloud_tasks", found, needed)
    missing = [name for name in needed if name not in told]
    if missing:
        raise InvalidRequest(f"[cloud_tasks] needs the line {missing[0]!r}")
    return CloudTasks(**told)


def parsed_service(name: str, options: Any) -> Service:
    if not NAME.fullmatch(name) or not isinstance(options, dict):
        raise InvalidRequest(f"[services.{name}] must be a table under a short name")
    source = options.get("source")
    if not isinstance(source, str) or source not in SOURCES:
        raise InvalidRequest(f"[services.{name}] source must be one of {', '.join(SOURCES)}")
    rest = {key: value for key, value in options.items() if key != "source"}
    needed, more = SOURCES[source]
    told = texts(f"services.{name}", rest, (*needed, *more))
    missing = [each for each in needed if each not in told]
    if missing:
        raise InvalidRequest(f"[services.{name}] needs the line {missing[0]!r}, as every {source} source does")
    return Service(name=name, source=source, options=told)


def texts(where: str, found: dict[str, Any], known: tuple[str, ...]) -> Mapping[str, str]:
    refuse_unknown(f"[{where}]", found, set(known))
    wrong = [name for name, value in found.items() if not isinstance(value, str) or not value]
    if wrong:
        raise InvalidRequest(f"[{where}] {wrong[0]} must be text")
    return dict(found)


def a_table(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = found.get(name, {})
    if not isinstance(table, dict):
        raise InvalidRequest(f"[{name}] must be a table")
    return table


def refuse_unknown(where: str, found: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(found) - known)
    if unknown:
        raise InvalidRequest(f"{where} has the unknown line {unknown[0]!r}: it may have {', '.join(sorted(known))}")
