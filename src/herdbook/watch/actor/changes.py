"""What a release brought, from GitHub's own answers: commits, files, and the pull requests that promotions carried.

A comparison that GitHub cannot give is recorded as unavailable with the reason, and stops nothing.
"""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING, Any, NoReturn

from herdbook.watch.sources.protocol import Unreadable
from herdbook.watch.sources.web import Web, segment

if TYPE_CHECKING:
    from collections.abc import Mapping

PER_PAGE = 100
PAGES_MAX = 10
FILES_MAX = 300  # GitHub gives no more, and only on the first page
KEPT_MAX = 100
TITLE_CHARS_MAX = 200
TITLE_LINES_MAX = 4
MATCH_SECONDS_MAX = 1.0
SECONDS_MAX = 60.0  # for one repository: the logs are what the time is for
REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")


def compared(web: Web | None, repository: str, shas: Mapping[str, str], promotion: str) -> dict[str, Any]:
    """One repository's part of the changelog."""
    told: dict[str, Any] = {"before": shas["before"], "after": shas["after"]}
    if web is None:
        return {**told, "compare": "unavailable", "why": "no connection to GitHub is set up"}
    try:
        return {**told, **comparison(web, repository, shas, re.compile(promotion))}
    except (Unreadable, KeyError, TypeError, ValueError, AttributeError) as problem:  # the last: an answer of another form
        return {**told, "compare": "unavailable", "why": str(problem)}


def comparison(web: Web, repository: str, shas: Mapping[str, str], promotion: re.Pattern[str]) -> dict[str, Any]:
    where = f"/repos/{repository}/compare/{segment(shas['before'])}...{segment(shas['after'])}"
    first = web.json("GET", where, query={"per_page": str(PER_PAGE), "page": "1"})
    commits = list(first["commits"])
    page, until = 1, time.monotonic() + SECONDS_MAX
    while len(commits) < first["total_commits"] and page < PAGES_MAX and time.monotonic() < until:
        page += 1
        more = web.json("GET", where, query={"per_page": str(PER_PAGE), "page": str(page)})["commits"]
        if not more:
            break
        commits += more
    files = [each["filename"] for each in first.get("files") or []]
    messages = [each["commit"]["message"] for each in commits]
    return {
        "compare": first["status"],
        "ahead_by": first["ahead_by"],
        "behind_by": first["behind_by"],
        "commits": [{"sha": each["sha"], "message": title_of(each["commit"]["message"])} for each in commits[-KEPT_MAX:]],
        "files": files[:KEPT_MAX],
        "truncated": len(files) >= min(FILES_MAX, KEPT_MAX) or len(commits) > KEPT_MAX or len(commits) < first["total_commits"],
        **expanded(web, repository, commits, promotion, until=until),
        "reverts": [sha for message in messages for sha in REVERTS.findall(message)][:KEPT_MAX],
    }


def expanded(web: Web, repository: str, commits: list[Any], promotion: re.Pattern[str], *, until: float) -> dict[str, Any]:
    """The pull requests that promotions carried. A pattern that does not come to an end is given up, and that is said."""
    found: list[dict[str, Any]] = []
    try:
        for each in commits:
            titles = map(title_of, str(each["commit"]["message"]).split("\n")[:TITLE_LINES_MAX])  # a merge's own is below
            if time.monotonic() > until:
                return {"promoted": found[:KEPT_MAX], "promotion": f"not all were looked up within {SECONDS_MAX:g} seconds"}
            if len(found) < KEPT_MAX and any(matches(promotion, title) for title in titles):
                found += carried(web, repository, each, promotion)
    except Endless:
        return {
            "promoted": found[:KEPT_MAX],
            "promotion": "the pattern of promotions takes too long: write it without nested repeats",
        }
    return {"promoted": found[:KEPT_MAX]}


class Endless(Exception):
    """A pattern was tried for longer than any title is worth."""


def matches(pattern: re.Pattern[str], title: str) -> bool:
    """Whether the pattern is in the title. The engine looks for signals while it tries, so an alarm can end it."""
    before = signal.signal(signal.SIGALRM, gave_up)
    signal.setitimer(signal.ITIMER_REAL, MATCH_SECONDS_MAX)
    try:
        return pattern.search(title) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def gave_up(*_: object) -> NoReturn:
    raise Endless


def carried(web: Web, repository: str, commit: Mapping[str, Any], promotion: re.Pattern[str]) -> list[dict[str, Any]]:
    """The pull requests behind a promotion: those GitHub joins to its commit and those its message names, without its own."""
    found: dict[int, str] = {}
    try:
        for pull in web.json("GET", f"/repos/{repository}/commits/{segment(commit['sha'])}/pulls"):
            found[int(pull["number"])] = title_of(pull["title"])
    except Unreadable:
        pass  # because 409 is an answer too: the message may still say
    for number in map(int, re.findall(r"#(\d{1,9})\b", commit["commit"]["message"])):
        if number not in found and len(found) < KEPT_MAX:
            try:
                found[number] = title_of(web.json("GET", f"/repos/{repository}/pulls/{number}")["title"])
            except Unreadable:
                found[number] = ""
    told = {number: title for number, title in found.items() if not matches(promotion, title)} or found
    return [{"number": number, "title": title} for number, title in sorted(told.items())]


def changelog(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """What a person reads first."""
    lines = []
    for repository, change in changes.items():
        span = f"{change['before'][:12]}..{change['after'][:12]}"
        if change["compare"] == "unavailable":
            lines.append(f"{repository} {span}: compare unavailable ({change['why']})")
            continue
        lines.append(f"{repository} {span}: {change['compare']}, {len(change['commits'])} commits, {len(change['files'])} files")
        lines += [f"  #{each['number']} {each['title']}" for each in change["promoted"]]
        lines += [f"  {each['sha'][:12]} {each['message']}" for each in change["commits"]]
    return "\n".join(lines)


def title_of(message: object) -> str:
    return str(message).split("\n", 1)[0][:TITLE_CHARS_MAX]
