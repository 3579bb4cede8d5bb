"""A fake GitHub over a real git repository: the calls a watch makes, answered in the shapes that GitHub publishes.

For tests and the demo.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from examples.watch_demo.repository import Repository

API = "https://api.github.com"
DOCUMENTED = "https://docs.github.com/rest"
NOT_FOUND = {"message": "Not Found", "documentation_url": DOCUMENTED, "status": "404"}
USER = {"login": "ann", "id": 1, "node_id": "U_1", "type": "User", "site_admin": False}


class GitHub:
    """One repository, its pull requests, and what was asked."""

    def __init__(self, name: str, repository: Repository, token: str) -> None:
        self.name, self.repository, self.token = name, repository, token
        self.pulls: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.handle_one("GET")

            def do_POST(self) -> None:
                self.handle_one("POST")

            def do_PUT(self) -> None:
                self.handle_one("PUT")

            def handle_one(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, answer = outer.answer(method, self.path, body, self.headers.get("authorization", ""))
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: Any) -> None:
                """Silent: `asked` is what it remembers."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method: str, target: str, body: bytes, authorization: str) -> tuple[int, Any]:
        where = urlsplit(target)
        path, query = unquote(where.path), dict(parse_qsl(where.query))
        if authorization != f"Bearer {self.token}":
            return 401, {"message": "Bad credentials", "documentation_url": DOCUMENTED}
        with self.lock:
            self.asked.append(f"{method} {path}")
            for pattern, allowed, answers in ROUTES:
                found = re.fullmatch(f"/repos/{re.escape(self.name)}{pattern}", path)
                if found and method == allowed:
                    return answers(self, found, query, json.loads(body) if body else {})
        return 404, NOT_FOUND

    # --- what is asked of it ---

    def compare(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        base, head = found[1], found[2]
        if not (self.repository.exists(base) and self.repository.exists(head)):
            return 404, NOT_FOUND
        git = self.repository.git
        shas = git("rev-list", "--reverse", f"{base}..{head}").split()
        behind = len(git("rev-list", f"{head}..{base}").split())
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        names = [line.split("\t") for line in git("diff", "--name-status", f"{base}...{head}").splitlines()]
        status = "identical" if not shas and not behind else "ahead" if not behind else "behind" if not shas else "diverged"
        url = f"{API}/repos/{self.name}/compare/{base}...{head}"
        return 200, {
            "url": url, "html_url": url, "permalink_url": url, "diff_url": f"{url}.diff", "patch_url": f"{url}.patch",
            "base_commit": self.commit(base), "merge_base_commit": self.commit(git("merge-base", base, head)),
            "status": status, "ahead_by": len(shas), "behind_by": behind, "total_commits": len(shas),
            "commits": [self.commit(sha) for sha in shas[(page - 1) * size : page * size]],
            "files": [self.file(kind, name) for kind, name in names] if page == 1 else [],
        }  # fmt: skip

    def commit(self, sha: str) -> dict[str, Any]:
        tree, message, when = self.repository.git("show", "-s", "--format=%T%x00%B%x00%aI", sha).split("\0")
        author = {"name": "Ann", "email": "ann@acme.example", "date": when}
        url = f"{API}/repos/{self.name}/commits/{sha}"
        parents = self.repository.git("show", "-s", "--format=%P", sha).split()
        told = {"url": url, "author": author, "committer": author, "message": message.strip(), "comment_count": 0}
        return {
            "url": url, "sha": sha, "node_id": f"C_{sha[:12]}", "html_url": url, "comments_url": f"{url}/comments",
            "commit": {**told, "tree": {"sha": tree, "url": f"{API}/repos/{self.name}/git/trees/{tree}"}},
            "author": USER, "committer": USER,
            "parents": [{"sha": parent, "url": f"{API}/repos/{self.name}/commits/{parent}"} for parent in parents],
        }  # fmt: skip

    def file(self, kind: str, name: str) -> dict[str, Any]:
        status = {"A": "added", "M": "modified", "D": "removed"}.get(kind[:1], "changed")
        url = f"{API}/repos/{self.name}/contents/{name}"
        counts = {"additions": 1, "deletions": 1, "changes": 2}
        return {
            "sha": "0" * 40,
            "filename": name,
            "status": status,
            **counts,
            "blob_url": url,
            "raw_url": url,
            "contents_url": url,
        }

    def pulls_of(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        return 200, [pull for pull in self.pulls if pull.get("merge_commit_sha") == found[1]]

    def pull(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        mine = [pull for pull in self.pulls if pull["number"] == int(found[1])]
        return (200, mine[0]) if mine else (404, NOT_FOUND)

    def ref(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        sha = self.repository.head(found[1])
        return (200, ref_of(found[1], sha)) if sha else (404, NOT_FOUND)

    def make_ref(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        branch = body["ref"].removeprefix("refs/heads/")
        if self.repository.head(branch):
            return 422, {"message": "Reference already exists", "documentation_url": DOCUMENTED}
        self.repository.git("update-ref", body["ref"], body["sha"])
        return 201, ref_of(branch, body["sha"])

    def contents(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        there = self.repository.content(query.get("ref", "main"), found[1])
        if there is None:
            return 404, NOT_FOUND
        blob, data = there
        name = found[1].rpartition("/")[2]
        url = f"{API}/repos/{self.name}/contents/{found[1]}"
        told = {"type": "file", "encoding": "base64", "size": len(data), "name": name, "path": found[1], "sha": blob}
        urls = {
            "url": url,
            "git_url": url,
            "html_url": url,
            "download_url": url,
            "_links": dict.fromkeys(("self", "git", "html"), url),
        }
        return 200, {**told, **urls, "content": base64.encodebytes(data).decode()}  # in lines, as GitHub sends it

    def put_contents(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        there = self.repository.content(body["branch"], found[1])
        if (there[0] if there else None) != body.get("sha"):
            return 409, {"message": f"{found[1]} does not match {body.get('sha')}", "documentation_url": DOCUMENTED}
        sha = self.repository.commit(body["branch"], {found[1]: base64.b64decode(body["content"])}, body["message"])
        return (200 if there else 201), {"content": {"path": found[1]}, "commit": {"sha": sha, "message": body["message"]}}

    def list_pulls(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        state, head = query.get("state", "open"), query.get("head", "").partition(":")[2]
        return 200, [pull for pull in self.pulls if pull["state"] == state and (not head or pull["head"]["ref"] == head)]

    def make_pull(self, found: re.Match[str], query: dict[str, str], body: Any) -> tuple[int, Any]:
        if any(pull["head"]["ref"] == body["head"] and pull["state"] == "open" for pull in self.pulls):
            return 422, invalid("A pull request already exists")
        if self.repository.head(body["head"]) == self.repository.head(body["base"]):
            return 422, invalid("No commits between")
        number = len(self.pulls) + 1
        pull = {
            "number": number, "state": "open", "draft": bool(body.get("draft")), "title": body["title"], "body": body.get("body"),
            "html_url": f"https://github.com/{self.name}/pull/{number}", "user": USER, "merged_at": None,
            "merge_commit_sha": None,
            "head": {"ref": body["head"], "sha": self.repository.head(body["head"])},
            "base": {"ref": body["base"], "sha": self.repository.head(body["base"])},
        }  # fmt: skip
        self.pulls.append(pull)
        return 201, pull

    def merge(self, number: int) -> str:
        """What a person does with a button: the draft's files on the base branch."""
        pull = next(each for each in self.pulls if each["number"] == number)
        names = self.repository.git("diff", "--name-only", f"main...{pull['head']['ref']}").split()
        files = {name: (self.repository.content(pull["head"]["ref"], name) or ("", b""))[1] for name in names}
        sha = self.repository.commit("main", files, f"{pull['title']} (#{number})")
        pull.update(state="closed", draft=False, merged_at="2026-07-30T12:00:00Z", merge_commit_sha=sha)
        return sha


def invalid(why: str) -> dict[str, Any]:
    errors = [{"resource": "PullRequest", "code": "custom", "message": why}]
    return {"message": "Validation Failed", "errors": errors, "documentation_url": DOCUMENTED}


def ref_of(branch: str, sha: str) -> dict[str, Any]:
    return {"ref": f"refs/heads/{branch}", "node_id": "R_1", "url": API, "object": {"type": "commit", "sha": sha, "url": API}}


ROUTES = (
    (r"/compare/([0-9a-f]+)\.\.\.([0-9a-f]+)", "GET", GitHub.compare),
    (r"/commits/([0-9a-f]+)/pulls", "GET", GitHub.pulls_of),
    (r"/pulls/(\d+)", "GET", GitHub.pull),
    (r"/git/ref/heads/(.+)", "GET", GitHub.ref),
    (r"/git/refs", "POST", GitHub.make_ref),
    (r"/contents/(.+)", "GET", GitHub.contents),
    (r"/contents/(.+)", "PUT", GitHub.put_contents),
    (r"/pulls", "GET", GitHub.list_pulls),
    (r"/pulls", "POST", GitHub.make_pull),
)
