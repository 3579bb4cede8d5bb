"""One errand in a box of its own: say something to people, or open a draft. Made only after the gates were asked.

It is told what to do by its host and knows nothing else; what it reaches, it reaches through the gateway.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from typing import Any

from herdbook.watch.sources.protocol import Unreadable
from herdbook.watch.sources.web import Web, segment

TRIES_MAX = 3
PAUSE_SECONDS_MAX = 5.0


def notify(web: Web, task: dict[str, Any]) -> dict[str, Any]:
    """Post a text to a chat's webhook, which answers `ok`."""
    why = ""
    for number in range(TRIES_MAX):
        if number:
            time.sleep(min(PAUSE_SECONDS_MAX, 0.2 * 4**number))
        try:
            status, data = web.ask("POST", "/", {"text": task["text"]})
        except Unreadable as problem:
            why = str(problem)
            continue
        if status == 200:
            return {"ok": True}
        why = f"it answered {status}: {data[:200].decode('utf-8', 'replace')}"
        if 400 <= status < 500 and status != 429:
            break
    return {"ok": False, "why": why}


def draft(web: Web, task: dict[str, Any]) -> dict[str, Any]:
    """A branch, its files one after the other, and a draft pull request. Done twice it is done once."""
    where = f"/repos/{task['repository']}"
    base = web.json("GET", f"{where}/git/ref/heads/{segment(task['base'])}")["object"]["sha"]
    made, said = web.ask("POST", f"{where}/git/refs", {"ref": f"refs/heads/{task['branch']}", "sha": base})
    if made not in (201, 422):  # 422: an earlier attempt made it
        return {"why": f"the branch was answered with {made}: {said[:200].decode('utf-8', 'replace')}"}
    for path, content in contents(web, where, task).items():
        put(web, where, path, content, task)
    asked = {"title": task["title"], "head": task["branch"], "base": task["base"], "body": task["body"], "draft": True}
    status, data = web.ask("POST", f"{where}/pulls", asked)
    if status == 201:
        found = json.loads(data)
        return {"url": found["html_url"], "number": found["number"], "how": task["how"]}
    if status == 422:
        owner = task["repository"].partition("/")[0]
        open_ones = web.json("GET", f"{where}/pulls", query={"head": f"{owner}:{task['branch']}", "state": "open"})
        if open_ones:
            return {"url": open_ones[0]["html_url"], "number": open_ones[0]["number"], "how": task["how"]}
    return {"why": f"the draft was answered with {status}: {data[:300].decode('utf-8', 'replace')}"}


def contents(web: Web, where: str, task: dict[str, Any]) -> dict[str, bytes]:
    """The files to write: as they were given, or as they were before the release."""
    if task["files"]:
        return {path: text.encode() for path, text in task["files"].items()}
    found = {}
    for path in task["revert_paths"]:
        status, data = web.ask("GET", f"{where}/contents/{spelled(path)}", query={"ref": task["revert_to"]})
        if status == 200:  # a file that the release added stays: taking files away is a person's
            found[path] = base64.b64decode(json.loads(data)["content"])
    return found


def put(web: Web, where: str, path: str, content: bytes, task: dict[str, Any]) -> None:
    status, data = web.ask("GET", f"{where}/contents/{spelled(path)}", query={"ref": task["branch"]})
    there = json.loads(data) if status == 200 else {}
    if there and base64.b64decode(there["content"]) == content:
        return
    body = {"message": task["title"], "content": base64.b64encode(content).decode(), "branch": task["branch"]}
    if there:
        body["sha"] = there["sha"]
    web.json("PUT", f"{where}/contents/{spelled(path)}", body)


def spelled(path: str) -> str:
    return "/".join(segment(part) for part in path.split("/"))


def main() -> int:
    with open("task.json", encoding="utf-8") as file:
        task = json.load(file)
    web = Web(f"{os.environ['HERDBOOK_URL']}:/v1/gateway/{task['connection']}")
    try:
        done = {"notify": notify, "draft": draft}[task["errand"]](web, task)
    except (Unreadable, KeyError, TypeError, ValueError) as problem:
        done = {"ok": False, "why": str(problem) or type(problem).__name__}
    sys.stdout.write(json.dumps({"event": "done", **done}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
