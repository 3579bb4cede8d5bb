"""What each page asks of the record. A verb that this caller may not ask leaves a sentence in its place, not an empty page.

Looking is not reading: no page names a run, so nothing is logged as served, and no trust rests on who looked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from herdbook.base.errors import Forbidden, InvalidRequest, Unavailable
from herdbook.base.limits import PAGE_MAX
from herdbook.surfaces.web import figures

Ask = Callable[..., Awaitable[dict[str, Any]]]
Query = Mapping[str, str]
PageOf = Callable[[Ask, Query], Awaitable[dict[str, Any]]]

FOUND: Final = 30
SHOWN: Final = 100  # boxes and jobs, the newest
WATCHES: Final = "watch"  # the watcher's queue
TYPES: Final = ("success", "minor_failure", "failure", "critical_failure")
STANDINGS: Final = ("corroborated", "observed", "contested", "unproven", "retired")


def wanted(query: Query, name: str) -> str:
    """A part of the address that the page cannot do without."""
    if not query.get(name):
        raise InvalidRequest(f"this page needs `{name}=` in its address: begin at the first page")
    return query[name]


def after(query: Query) -> dict[str, str]:
    """Where the page before ended."""
    return {"after": query["after"]} if query.get("after") else {}


async def if_allowed(asked: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """The answer, or why there is none for this caller, or not now."""
    try:
        return await asked
    except (Forbidden, Unavailable) as refusal:
        return {"refusal": refusal.message}


async def home(ask: Ask, query: Query) -> dict[str, Any]:
    """Every path there is, and how much of what is known there has held. What walks the whole record has pages of its own."""
    listed = await ask("list", limit=PAGE_MAX, **after(query))
    paths = [path_line(path) for path in listed["paths"]]
    tuned = await if_allowed(ask("tuning"))
    values = {each["name"]: each["value"] for each in tuned.get("tuning", [])}
    return {
        "title": "The record",
        "paths": paths,
        "next": listed["next"],
        "holdback": values.get("holdback"),
    }


def path_line(path: dict[str, Any]) -> dict[str, Any]:
    counts = Counter(each["standing"] for each in path["entries"])
    return {
        "entity": path["entity"],
        "entries": len(path["entries"]),
        "bar": figures.shares([(name, counts[name]) for name in STANDINGS]),
        "counts": counts,
    }


async def entity(ask: Ask, query: Query) -> dict[str, Any]:
    """What a box would be told at a path, for a task if one is given; then everything that is there."""
    path, task = wanted(query, "path"), query.get("task", "").strip()
    told = await ask("brief", entity=path, names=True, **({"task": task} if task else {}))
    listed = await ask("list", entity=path, limit=PAGE_MAX, **after(query))
    here = [each for each in listed["paths"] if each["entity"] == path]
    return {
        "title": path,
        "path": path,
        "task": task,
        "told": told,
        "blocks": [
            ("Already tried, and it did not work", told["dead_ends"]),
            ("Contested: held before, failed lately", told["contested"]),
            ("What stands", [each for each in told["entries"] if each["acting"]]),
            ("Hints: not yet proven", [each for each in told["entries"] if not each["acting"]]),
        ],
        "listed": here[0]["entries"] if here else [],
        "next": listed["next"],
    }


async def entry(ask: Ask, query: Query) -> dict[str, Any]:
    """One entry: what it says, every version of it, and every move of its trust."""
    path, key = wanted(query, "path"), wanted(query, "key")
    read = await ask("read", entity=path, key=key)
    history = await ask("history", entity=path, key=key)
    why = await ask("why", entity=path, key=key)
    return {
        "title": f"{path} · {key}",
        "path": path,
        "key": key,
        "entry": read,
        "versions": list(reversed(history["versions"])),
        "claims": [claim | {"line": figures.confidence(claim)} for claim in why["claims"]],
        "base_rate": why["base_rate"],
    }


async def runs(ask: Ask, query: Query) -> dict[str, Any]:
    """How runs ended, the newest first; of one path, or of one type."""
    path, kind = query.get("path", "").strip(), query.get("type", "")
    asked = {"entity": path} if path else {}
    ended = await ask("outcomes", limit=SHOWN, **asked, **({"type": kind} if kind else {}), **after(query))
    return {"title": f"Runs about {path}" if path else "Runs", "path": path, "type": kind, "types": TYPES, "ended": ended}


async def run(ask: Ask, query: Query) -> dict[str, Any]:
    """A run, put together again: what it was told, what it did, what happened."""
    ref = wanted(query, "ref")
    return {"title": f"run {ref}", "ref": ref, "run": await ask("trace", ref=ref)}


async def search(ask: Ask, query: Query) -> dict[str, Any]:
    words, path = query.get("q", "").strip(), query.get("path", "").strip()
    found = await ask("search", query=words, limit=FOUND, **({"entity": path} if path else {})) if words else None
    return {"title": f"search: {words}" if words else "Search", "q": words, "path": path, "found": found}


async def prove(ask: Ask, query: Query) -> dict[str, Any]:
    """What the record is worth, with intervals, or that there is not enough data to say."""
    path = query.get("path", "").strip()
    proof = await ask("prove", **({"entity": path} if path else {}))
    return {"title": f"What the record is worth{f' at {path}' if path else ''}", "path": path, "proof": proof_view(proof)}


def proof_view(proof: dict[str, Any]) -> dict[str, Any]:
    """The answer of `prove` with its pictures."""
    by_entity = [(each["entity"], each["low"], each["estimate"], each["high"]) for each in proof["by_entity"]]
    entries = [
        (f"{each['entity']} {each['key']} v{each['version']}", each["low"], each["effect"], each["high"])
        for each in proof["entries"]
    ]
    return proof | {"forest": figures.intervals(by_entity), "entries_forest": figures.intervals(entries)}


async def state(ask: Ask, query: Query) -> dict[str, Any]:
    """How the record itself is: its counts, its seals, and what is wrong with it."""
    return {"title": "The record itself", "status": await ask("status")}


async def boxes(ask: Ask, query: Query) -> dict[str, Any]:
    return {"title": "Boxes", "boxes": (await ask("box_list", limit=SHOWN))["boxes"]}


async def watches(ask: Ask, query: Query) -> dict[str, Any]:
    """Every watch of a deploy and every diagnosis, the newest first, with what was made of it and why."""
    jobs = (await ask("job_list", queue=WATCHES, limit=SHOWN))["jobs"]
    return {"title": "On call", "jobs": [job | {"verdicts": verdicts_of(job["result"])} for job in jobs]}


def verdicts_of(result: Any) -> list[dict[str, Any]]:
    """What a watch made of each service. A result is whatever its worker told: what is not one is left out."""
    found = result.get("verdicts") if isinstance(result, dict) else None
    needed = {"service", "label", "allowed", "reason"}
    return [each for each in found or [] if isinstance(each, dict) and needed <= each.keys()] if isinstance(found, list) else []


PAGES: Final[dict[str, tuple[str, PageOf]]] = {  # by the last part of the address: the template, and what it shows
    "": ("home.html", home),
    "entity": ("entity.html", entity),
    "entry": ("entry.html", entry),
    "runs": ("runs.html", runs),
    "run": ("run.html", run),
    "search": ("search.html", search),
    "prove": ("prove.html", prove),
    "state": ("state.html", state),
    "boxes": ("boxes.html", boxes),
    "watches": ("watches.html", watches),
}


def pretty(value: Any) -> str:
    """A value as JSON over several lines, in the characters that it has."""
    return json.dumps(value, ensure_ascii=False, indent=2)
