"""The fake GitHub against the shapes that GitHub publishes, and the draft that takes a release back, opened through it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import jsonschema
import pytest

from examples.watch_demo.github import GitHub
from examples.watch_demo.repository import Repository
from herdbook.watch import pull_request
from herdbook.watch.actor import changes, entries, errand
from herdbook.watch.findings import KnownClass
from herdbook.watch.sources.web import Web

NAME, TOKEN = "acme/app", "ghp-of-this-test-only"
HERE = f"/repos/{NAME}"
CONTRACT = json.loads((Path(__file__).parent / "github_contract.json").read_text(encoding="utf-8"))


class Keyed(Web):
    """A door that adds the credential, as the gateway does, and holds each answer against GitHub's contract."""

    def ask(self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        sent = None if body is None else json.dumps(body).encode()
        url = f"http://{self.host}{path}{'?' + urlencode(query) if query else ''}"
        request = Request(url, sent, {"Authorization": f"Bearer {TOKEN}"}, method=method)
        try:
            with urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except HTTPError as refused:
            return refused.code, refused.read()

    def kept(self, shape: str, status: int, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The answer, if it has the status and the shape that GitHub's has."""
        answered, data = self.ask(method, f"{HERE}{path}", body, query=query)
        found = json.loads(data)
        assert status == answered, found
        jsonschema.validate(found, {"$ref": f"#/$defs/{shape}", "$defs": CONTRACT["$defs"]})
        return found


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    found = GitHub(NAME, Repository(tmp_path / "app.git"), TOKEN)
    yield found
    found.close()


@pytest.fixture
def web(github: GitHub) -> Keyed:
    return Keyed(github.url)


def draft_of(head: str) -> dict[str, Any]:
    return {"title": "A draft", "head": head, "base": "main", "body": "Why", "draft": True}


def test_every_answer_of_the_fake_has_githubs_shape(github: GitHub, web: Keyed) -> None:
    """The watcher would be right about a GitHub that there is not."""
    first = github.repository.first
    second = github.repository.commit("main", {"toy/search.py": "NOTES = []\n", "toy/more.py": ""}, "Promote to main (#1)")
    told = web.kept("comparison", 200, "GET", f"/compare/{first}...{second}", per_page="100", page="1")
    assert ({"modified", "added"}, 1) == ({each["status"] for each in told["files"]}, told["total_commits"])
    web.kept("comparison", 200, "GET", f"/compare/{second}...{second}")
    web.kept("comparison", 200, "GET", f"/compare/{second}...{first}")
    web.kept("refusal", 404, "GET", f"/compare/{'0' * 40}...{second}")
    web.kept("ref", 200, "GET", "/git/ref/heads/main")
    web.kept("refusal", 404, "GET", "/git/ref/heads/nowhere")
    web.kept("ref", 201, "POST", "/git/refs", {"ref": "refs/heads/mend", "sha": second})
    web.kept("refusal", 422, "POST", "/git/refs", {"ref": "refs/heads/mend", "sha": second})
    web.kept("refusal", 422, "POST", "/pulls", draft_of("mend"))  # there is nothing in it yet
    there = web.kept("content", 200, "GET", "/contents/toy/search.py", ref="mend")
    web.kept("refusal", 404, "GET", "/contents/toy/nowhere.py", ref="mend")
    fresh = {"message": "Mend", "content": there["content"], "branch": "mend"}
    web.kept("refusal", 409, "PUT", "/contents/toy/more.py", {**fresh, "sha": "0" * 40})
    web.kept("written", 201, "PUT", "/contents/toy/new.py", fresh)
    made = web.kept("pull", 201, "POST", "/pulls", draft_of("mend"))
    assert made["draft"]
    web.kept("refusal", 422, "POST", "/pulls", draft_of("mend"))
    web.kept("pulls", 200, "GET", "/pulls", head="acme:mend", state="open")
    merged = github.merge(made["number"])
    web.kept("pull", 200, "GET", f"/pulls/{made['number']}")
    assert [made["number"]] == [each["number"] for each in web.kept("pulls", 200, "GET", f"/commits/{merged}/pulls")]


def test_the_contract_refuses_what_github_would_not_say(web: Keyed) -> None:
    """A contract that everything meets would hold nobody to anything."""
    with pytest.raises(jsonschema.ValidationError):
        web.kept("pull", 200, "GET", "/git/ref/heads/main")


def asked_for(github: GitHub, before: str, after: str, changed: list[str]) -> dict[str, Any]:
    """The draft of a class that has no fix on record, and of a watch whose agent proposed nothing."""
    return pull_request.draft(
        {"service": "api", "label": "product_regression", "signals": {"lines": ["boom"]}, "files": {}, "diagnosis": ""},
        {"reason": "seen before, and the last fix held", "entries": ["acme/deploy regression-x 1"], "outcomes": ["fix-1"]},
        KnownClass("acme/deploy", "regression-x", 1, "product_regression", ("boom",)),
        job={"key": f"deploy-{after[:12]}", "body": {"repositories": {NAME: {"before": before, "after": after}}}},
        repository=NAME,
        base="main",
        reads=["acme/deploy regression-x version 1 (briefing)"],
        changed=changed,
    )


def test_without_a_fix_the_draft_takes_the_releases_files_back(github: GitHub, web: Keyed) -> None:
    """A known regression without a recorded fix would get no draft, an empty one, or one that takes other files away."""
    before = github.repository.commit("main", {"toy/kept.py": "A = 1\n"}, "Before")
    old = (github.repository.content(before, "toy/search.py") or ("", b""))[1]
    after = github.repository.commit("main", {"toy/search.py": "broken\n", "toy/added.py": "B = 1\n"}, "The release")
    asked = asked_for(github, before, after, ["toy/search.py", "toy/added.py"])
    assert "a revert of this release's files" in asked["body"]
    done = errand.draft(web, asked)
    [pull] = github.pulls
    assert (pull["html_url"], "a revert of this release's files") == (done["url"], done["how"])
    content, branch = github.repository.content, asked["branch"]
    assert old == (content(branch, "toy/search.py") or ("", b""))[1]
    assert b"B = 1\n" == (content(branch, "toy/added.py") or ("", b""))[1]  # taking a file away is a person's
    assert b"broken\n" == (content("main", "toy/search.py") or ("", b""))[1]
    assert done == errand.draft(web, asked)
    assert 1 == len(github.pulls)


def test_where_nothing_came_before_there_is_nothing_to_take_back(github: GitHub, web: Keyed) -> None:
    """A first release, or one started by hand, would be taken back to something that never ran."""
    after = github.repository.commit("main", {"toy/search.py": "broken\n"}, "The release")
    done = errand.draft(web, asked_for(github, "0" * 40, after, ["toy/search.py"]))
    assert "422" in done["why"]
    assert [] == github.pulls


class Told(Web):
    """A GitHub that compares two commits into these messages, and knows no pull request."""

    def __init__(self, *messages: str) -> None:
        self.messages = messages

    def json(self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None) -> Any:
        if "/compare/" not in path:
            return [] if path.endswith("/pulls") else {"title": f"carried by {path.rpartition('/')[2]}"}
        commits = [{"sha": f"{number:040}", "commit": {"message": text}} for number, text in enumerate(self.messages)]
        return {"status": "ahead", "ahead_by": 1, "behind_by": 0, "total_commits": len(commits), "commits": commits, "files": []}


SHAS = {"before": "0" * 40, "after": "1" * 40}


def test_a_pattern_of_promotions_that_never_ends_is_given_up_and_said() -> None:
    """One line in watch.toml and one commit's title would keep every release of theirs from being watched."""
    found = changes.compared(Told("a" * 150 + "!"), NAME, SHAS, r"^(a+)+$")
    assert ("ahead", [], True) == (found["compare"], found["promoted"], "takes too long" in found["promotion"])


@pytest.mark.parametrize(
    "message", ["Promote to main (#7)", "Merge pull request #9 from acme/dev\n\nPromote to main: #7 and more"]
)
def test_a_promotion_is_known_by_its_title_whichever_way_it_was_merged(message: str) -> None:
    """The pull requests that it carried would be nowhere in the changelog."""
    found = changes.compared(Told("Something else", message), NAME, SHAS, "^Promote to main")
    assert "carried by 7" in [each["title"] for each in found["promoted"]]


@pytest.mark.parametrize("answer", [[], {}, {"commits": 3, "total_commits": 1}, {"commits": [{}], "total_commits": 1}, "text"])
def test_an_answer_of_another_form_is_no_comparison_and_no_end(answer: Any) -> None:
    """A proxy's page in GitHub's place would end the watch."""

    class Odd(Told):
        def json(self, *args: Any, **more: Any) -> Any:
            return answer

    assert "unavailable" == changes.compared(Odd(), NAME, SHAS, "^Promote")["compare"]


def test_a_large_release_is_written_down_all_the_same() -> None:
    """A comparison of a hundred long commits would be more than the record keeps of one value, and the watch would fail."""
    found = changes.compared(Told(*("\u00e9" * 300 for _ in range(250))), NAME, SHAS, "^Promote")
    value = entries.fitting({"repositories": {NAME: found, "acme/library": found}})
    assert (True, True) == (value["shortened"], len(json.dumps(value, ensure_ascii=False).encode()) < 64 * 1024)
    assert "ahead" == value["repositories"][NAME]["compare"]
