"""Every source against a small server, or program, that answers in the shapes its maker documents."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from herdbook.watch.sources.choose import in_box, on_host
from herdbook.watch.sources.cloud_run import CloudRunSource
from herdbook.watch.sources.docker import DockerSource
from herdbook.watch.sources.file import FileSource
from herdbook.watch.sources.journald import JournaldSource
from herdbook.watch.sources.kubernetes import KubernetesSource
from herdbook.watch.sources.loki import LokiSource
from herdbook.watch.sources.moments import iso_of, seconds_of
from herdbook.watch.sources.protocol import LINES_PER_PAGE, Page, Source, Unreadable
from herdbook.watch.sources.web import Web

Answer = tuple[int, Any]
T0 = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class Served:
    """Answers by what is asked, and remembers it."""

    def __init__(self, answer: Callable[[str, str, dict[str, str], Any], Answer]) -> None:
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.handled("GET")

            def do_POST(self) -> None:
                self.handled("POST")

            def handled(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                where = urlsplit(self.path)
                asked = (method, where.path, dict(parse_qsl(where.query)), json.loads(body) if body else None)
                outer.asked.append(asked)
                status, found = answer(*asked)
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.web = Web(f"http://127.0.0.1:{self.server.server_address[1]}")
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[..., Answer]], Served]]:
    made: list[Served] = []

    def start(answer: Callable[..., Answer]) -> Served:
        made.append(Served(answer))
        return made[-1]

    yield start
    for each in made:
        each.close()


def all_of(source: Source, since: float = T0) -> list[str]:
    """Every line there is, page by page, until a page is the last and empty."""
    cursor, texts = repr(since), []
    for _ in range(50):
        page: Page = source.tail("api", cursor)
        texts += [line.text for line in page.lines]
        cursor = page.next
        if not page.more and not page.lines:
            return texts
    raise AssertionError("it never ends")


def test_a_file_is_read_from_where_the_watch_begins(tmp_path: Path) -> None:
    """Last year's errors would be this release's."""
    log = tmp_path / "app.log"
    log.write_text("ERROR of last year\n")
    source = FileSource({"path": str(log)})
    assert [] == all_of(source)
    first = source.tail("api", repr(T0))
    with log.open("a") as file:
        file.write("ERROR of now\nhalf a li")
    page = source.tail("api", first.next)
    assert ["ERROR of now"] == [line.text for line in page.lines]
    with log.open("a") as file:
        file.write("ne\n")
    assert ["half a line"] == [line.text for line in source.tail("api", page.next).lines]


def test_json_lines_count_by_their_own_time(tmp_path: Path) -> None:
    """What was logged between the release and the watch would be lost, or what was long before it taken in."""
    log = tmp_path / "app.jsonl"
    told = [
        {"time": T0 - 100, "message": "old"},
        {"timestamp": iso_of(T0 + 1), "severity": "ERROR", "msg": "new", "revision": "r2"},
    ]
    log.write_text("".join(json.dumps(each) + "\n" for each in told))
    [line] = FileSource({"path": str(log)}).tail("api", repr(T0)).lines
    assert ("ERROR new", T0 + 1, "r2") == (line.text, line.at, line.revision)


def test_a_file_that_is_rotated_is_no_failure_and_one_that_never_was_is(tmp_path: Path) -> None:
    """A rotation in the middle of a watch would end it, or a slip in a path would make every release a quiet one."""
    log = tmp_path / "app.log"
    source = FileSource({"path": str(log), "begins": "first line"})
    with pytest.raises(Unreadable, match="there is no log of api"):
        source.tail("api", repr(T0))
    log.write_text("one\ntwo\n")
    page = source.tail("api", repr(T0))
    log.unlink()
    assert () == source.tail("api", page.next).lines
    log.write_text("three\n")
    assert ["three"] == [line.text for line in source.tail("api", page.next).lines]


def test_a_long_file_comes_in_pages(tmp_path: Path) -> None:
    """A busy service would be read in one piece, or only in part."""
    log = tmp_path / "app.log"
    texts = [f"line {n}" for n in range(LINES_PER_PAGE * 2 + 3)]
    log.write_text("".join(f"{text}\n" for text in texts))
    assert texts == all_of(FileSource({"path": str(log), "begins": "first line"}))


def test_the_journal_is_asked_with_its_own_cursor(tmp_path: Path) -> None:
    """Lines would come twice, or be skipped."""
    program = tmp_path / "journalctl"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/asked\n'
        'case "$*" in *after-cursor*) exit 0;; esac\n'
        'echo \'{"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1767225601000000","MESSAGE":"hello"}\'\n'
        'echo \'{"__CURSOR":"s=1;i=3","__REALTIME_TIMESTAMP":"1767225602000000","MESSAGE":[104,105]}\'\n'
    )
    program.chmod(0o755)
    assert ["hello", "hi"] == all_of(JournaldSource({"unit": "api.service", "program": str(program)}))
    asked = (tmp_path / "asked").read_text()
    assert "--since=@1767225600" in asked
    assert "--after-cursor=s=1;i=3" in asked
    program.write_text("#!/bin/sh\necho no journal >&2\nexit 1\n")
    with pytest.raises(Unreadable, match="no journal"):
        JournaldSource({"unit": "api.service", "program": str(program)}).tail("api", repr(T0))


def framed(stream: int, text: str) -> bytes:
    data = text.encode()
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def test_dockers_frames_become_lines(serve: Callable[..., Served]) -> None:
    """Eight bytes of each frame would be taken for text."""
    lines = framed(1, f"{iso_of(T0 + 1)} out\n") + framed(2, f"{iso_of(T0 + 2)} err\n")
    state = {
        "State": {"Running": True, "Status": "running", "ExitCode": 0, "Health": {"Status": "unhealthy"}},
        "Image": "sha256:abc",
    }

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if path == "/containers/api/logs":
            return 200, lines if float(query["since"]) < T0 + 2 else b""
        return (200, state) if path == "/containers/api/json" else (404, {"message": "no such container"})

    served = serve(answer)
    source = DockerSource({"container": "api", "docker": served.url})
    assert ["out", "err"] == all_of(source)
    assert source.revision_state("api").newest_ready is False
    with pytest.raises(Unreadable):
        DockerSource({"container": "gone", "docker": served.url}).tail("api", repr(T0))


def test_kubernetes_tells_events_and_logs(serve: Callable[..., Served]) -> None:
    """Why a pod does not start is in its events, what went wrong in it is in its log."""
    event = {
        "type": "Warning", "reason": "Unhealthy", "message": "Startup probe failed", "lastTimestamp": iso_of(T0 + 1),
        "involvedObject": {"kind": "Pod", "name": "api-7d9-x"},
    }  # fmt: skip
    other = {**event, "involvedObject": {"kind": "Pod", "name": "web-1"}}
    deployment = {
        "metadata": {"generation": 4, "annotations": {"deployment.kubernetes.io/revision": "7"}}, "spec": {"replicas": 2},
        "status": {"observedGeneration": 4, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 2, "conditions": []},
    }  # fmt: skip

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if path == "/api/v1/namespaces/shop/pods":
            assert {"labelSelector": "app=api"} == query
            return 200, {"items": [{"metadata": {"name": "api-7d9-x"}}]}
        if path == "/api/v1/namespaces/shop/events":
            return 200, {"items": [event, other]}
        if path == "/api/v1/namespaces/shop/pods/api-7d9-x/log":
            return 200, f"{iso_of(T0 + 2)} Traceback\n".encode()
        return (200, deployment) if path == "/apis/apps/v1/namespaces/shop/deployments/api" else (404, {})

    source = KubernetesSource(serve(answer).web, {"namespace": "shop", "selector": "app=api", "deployment": "api"})
    assert ["Warning Unhealthy api-7d9-x: Startup probe failed", "Traceback"] == all_of(source)
    state = source.revision_state("api")
    assert ("7", False, True) == (state.newest, state.newest_ready, state.old_serves)


def test_loki_is_read_forward_without_repeats(serve: Callable[..., Served]) -> None:
    """The last line of each page would come again as the first of the next."""
    values = [[str(int((T0 + n) * 1e9)), f"line {n}"] for n in range(5)]

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        assert ("/loki/api/v1/query_range", "forward", '{app="api"}') == (path, query["direction"], query["query"])
        fresh = [value for value in values if int(value[0]) >= int(query["start"])][:2]
        return 200, {
            "status": "success",
            "data": {"resultType": "streams", "result": [{"stream": {"revision": "r1"}, "values": fresh}]},
        }

    assert [f"line {n}" for n in range(5)] == all_of(LokiSource(serve(answer).web, {"query": '{app="api"}'}))


def test_cloud_logging_is_paged_and_an_empty_page_is_not_the_end(serve: Callable[..., Served]) -> None:
    """A page without entries but with a token would end the reading."""
    entry = {
        "insertId": "a",
        "timestamp": iso_of(T0 + 1),
        "severity": "ERROR",
        "textPayload": "down",
        "resource": {"labels": {"revision_name": "api-2"}},
    }
    later = {"insertId": "b", "timestamp": iso_of(T0 + 1), "jsonPayload": {"message": "still"}}

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        assert ("POST", "/v2/entries:list", ["projects/p"]) == (method, path, body["resourceNames"])
        assert 'resource.labels.service_name="api"' in body["filter"]
        token = body.get("pageToken")
        if token is None:
            return 200, {"nextPageToken": "t1", "entries": [entry]}
        return (200, {"nextPageToken": "t2"}) if token == "t1" else (200, {"entries": [entry, later]})

    served = serve(answer)
    options = {"project": "p", "location": "l", "service": "api"}
    source = CloudRunSource(served.web, served.web, options)
    cursor, texts = repr(T0), []
    for _ in range(4):
        page = source.tail("api", cursor)
        texts += [line.text for line in page.lines]
        cursor = page.next
    assert ["ERROR down", "still"] == texts


@pytest.mark.parametrize(
    "terminal, created, ready, expected",
    [
        ("CONDITION_RECONCILING", "api-2", "api-1", (None, True)),
        ("CONDITION_FAILED", "api-2", "api-1", (False, True)),
        ("CONDITION_SUCCEEDED", "api-2", "api-2", (True, False)),
    ],
)
def test_cloud_run_says_which_revision_serves(
    serve: Callable[..., Served], terminal: str, created: str, ready: str, expected: tuple[bool | None, bool]
) -> None:
    """A new revision that does not serve yet would look like an outage, or a failed one like a slow one."""
    prefix = "projects/p/locations/l/services/api/revisions"
    told = {
        "latestCreatedRevision": f"{prefix}/{created}", "latestReadyRevision": f"{prefix}/{ready}",
        "trafficStatuses": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
        "terminalCondition": {"state": terminal, "message": "why"}, "reconciling": terminal.endswith("RECONCILING"),
    }  # fmt: skip

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        assert "/v2/projects/p/locations/l/services/api" == path
        return 200, told

    served = serve(answer)
    state = CloudRunSource(served.web, served.web, {"project": "p", "location": "l", "service": "api"}).revision_state("api")
    assert (expected, ready) == ((state.newest_ready, state.old_serves), state.serving)


@pytest.mark.parametrize("status, body", [(500, b"{}"), (403, b"{}"), (200, b"<html>"), (302, b"")])
def test_what_does_not_answer_in_its_form_is_unreadable(serve: Callable[..., Served], status: int, body: bytes) -> None:
    """A gateway's refusal would be taken for an empty log."""
    with pytest.raises(Unreadable):
        LokiSource(serve(lambda *asked: (status, body)).web, {"query": "{}"}).tail("api", repr(T0))


def test_every_kind_of_source_can_be_chosen_and_a_missing_line_is_named(tmp_path: Path) -> None:
    """A mistake in watch.toml would fail in the box, without a word."""
    assert on_host("loki", {}) is None
    for kind in ("file", "journald", "docker", "loki", "kubernetes", "cloud_run"):
        chooses = (
            (lambda kind=kind: on_host(kind, {}))
            if kind in ("file", "journald", "docker")
            else (lambda kind=kind: in_box(kind, {}, "unix:/run/x:/", "logs/a"))
        )
        with pytest.raises(Unreadable, match="needs the line"):
            chooses()


def test_times_are_read_in_every_zone() -> None:
    """A line would be an hour early, and not count."""
    assert (
        T0
        == seconds_of("2026-01-01T00:00:00Z")
        == seconds_of("2026-01-01 01:00:00.000+01:00")
        == seconds_of("2025-12-31T19:00:00-0500")
    )
    assert T0 + 0.25 == seconds_of(iso_of(T0 + 0.25))
    assert 0 == seconds_of("yesterday")


def test_sources_are_old_python_of_the_standard_library() -> None:
    """A box with an older Python could read no log."""
    import ast

    from herdbook.watch import pushing

    for path, data in pushing.files().items():
        ast.parse(data, filename=path, feature_version=(3, 8))
    code = (
        "import sys; sys.path.insert(0, '.'); import herdbook.watch.actor.main, herdbook.watch.actor.errand; print(*sys.modules)"
    )
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    for path, data in pushing.files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    import sys

    told = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    foreign = {name.split(".")[0] for name in told.stdout.split()} - set(sys.stdlib_module_names) - {"herdbook", "__main__"}
    assert set() == foreign
    assert time.time() > 0
