"""The Sprites API as it is documented, small and local: machines are sandboxes with the host's network, and programs really run.

Its gateway knows a machine as the real one does, by where a connection comes from and never by what it says: here, by the process
at the other end. A command before the network policy is refused.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.testing.boxes import eventually

TOKEN = "org/1/2/token-canary"
STDIN, STDOUT, STDERR, EXIT, STDIN_EOF = range(5)
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass
class Machine:
    name: str
    labels: list[str]
    root: Path
    rules: list[dict[str, Any]] = field(default_factory=list)
    sessions: dict[str, tuple[asyncio.subprocess.Process, str]] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        return {"id": self.name, "name": self.name, "organization": "org", "status": "running", "labels": self.labels}


@dataclass(frozen=True)
class Connection:
    """What the provider's gateway adds, and for whom."""

    base_url: str
    key: str
    name_prefix: str


class SpritesServer:
    def __init__(self, place: Path, bwrap: str) -> None:
        self.place, self.bwrap = place, bwrap
        self.machines: dict[str, Machine] = {}
        self.connections: dict[str, Connection] = {}
        self.calls: list[tuple[str, str]] = []
        self.headers: list[Mapping[str, str]] = []
        self.gateway_headers: list[Mapping[str, str]] = []
        self.url = ""
        one = "/v1/sprites/{name}"
        routes = [
            Route("/v1/sprites", self.create, methods=["POST"]),
            Route("/v1/sprites", self.listed, methods=["GET"]),
            Route(one, self.found, methods=["GET"]),
            Route(one, self.destroy, methods=["DELETE"]),
            Route(one + "/fs/write", self.write, methods=["PUT"]),
            Route(one + "/policy/network", self.policy, methods=["GET", "POST"]),
            Route(one + "/exec", self.sessions, methods=["GET"]),
            Route(one + "/exec/{session}/kill", self.kill, methods=["POST"]),
            WebSocketRoute(one + "/exec", self.execute),
            Route("/v1/gateway/{kind}/{connection}/{path:path}", self.gateway, methods=["GET", "POST"]),
        ]
        self.app = Starlette(routes=routes)

    def refused(self, request: Request) -> Response | None:
        self.calls.append((request.method, request.url.path))
        self.headers.append(request.headers)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"error": "unauthorized"}, 401)
        name = request.path_params.get("name")
        if name is not None and name not in self.machines:
            return JSONResponse({"error": "not found"}, 404)
        return None

    async def create(self, request: Request) -> Response:
        if no := self.refused(request):
            return no
        said = await request.json()
        if said["name"] in self.machines:
            return JSONResponse({"error": "name taken"}, 400)
        root = self.place / said["name"]
        root.mkdir()
        self.machines[said["name"]] = Machine(said["name"], said.get("labels", []), root)
        return JSONResponse(self.machines[said["name"]].told(), 201)

    async def listed(self, request: Request) -> Response:
        if no := self.refused(request):
            return no
        query = request.query_params
        size = int(query.get("max_results", 50))
        if size > 50:
            return JSONResponse({"error": "max_results is at most 50"}, 400)
        names = sorted(name for name in self.machines if name.startswith(query.get("prefix", "")))
        rest = [name for name in names if name > query.get("continuation_token", "")]
        page = {"sprites": [self.machines[name].told() for name in rest[:size]], "has_more": len(rest) > size}
        return JSONResponse({**page, "next_continuation_token": rest[size - 1] if len(rest) > size else None})

    async def found(self, request: Request) -> Response:
        return self.refused(request) or JSONResponse(self.machines[request.path_params["name"]].told())

    async def destroy(self, request: Request) -> Response:
        if no := self.refused(request):
            return no
        machine = self.machines.pop(request.path_params["name"])
        for process, _ in machine.sessions.values():
            with suppress(ProcessLookupError):
                process.kill()
        await asyncio.to_thread(subprocess.run, ["rm", "-rf", "--", str(machine.root)], check=False)
        return Response(status_code=204)

    async def write(self, request: Request) -> Response:
        if no := self.refused(request):
            return no
        query, machine = request.query_params, self.machines[request.path_params["name"]]
        inside = os.path.normpath(os.path.join(query["workingDir"], query["path"]))
        path = machine.root / Path(inside).relative_to("/var/tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await request.body())
        path.chmod(int(query["mode"], 8))
        return JSONResponse({"path": inside})

    async def policy(self, request: Request) -> Response:
        if no := self.refused(request):
            return no
        machine = self.machines[request.path_params["name"]]
        if request.method == "GET":
            return JSONResponse({"rules": machine.rules})
        machine.rules = (await request.json())["rules"]
        return Response(status_code=204)

    async def sessions(self, request: Request) -> Response:
        if no := self.refused(request):
            return no
        running = self.machines[request.path_params["name"]].sessions
        return JSONResponse({"sessions": [{"id": name, "command": command} for name, (_, command) in running.items()]})

    async def kill(self, request: Request) -> Response:
        """The signal to the session's own process; after `timeout` seconds, the end of all of it."""
        if no := self.refused(request):
            return no
        said = await request.json()
        process, _ = self.machines[request.path_params["name"]].sessions[request.path_params["session"]]
        for pid in below(process.pid)[1:2]:  # the sandbox's own processes come first
            os.kill(pid, getattr(signal, said["signal"]))
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(process.wait()), said["timeout"])
        if process.returncode is None:
            process.kill()
        return Response('{"type": "info", "data": "killed"}\n')

    async def execute(self, socket: WebSocket) -> None:
        self.headers.append(socket.headers)
        self.calls.append(("EXEC", socket.url.path))
        machine = self.machines.get(socket.path_params["name"])
        if machine is None or not machine.rules or socket.headers.get("authorization") != f"Bearer {TOKEN}":
            await socket.close()
            return
        await socket.accept()
        query = socket.query_params
        command = query.getlist("cmd")
        session = f"s{len(self.calls)}"
        process = await asyncio.create_subprocess_exec(
            *self.sandbox(machine, query.get("dir", "/var/tmp")), *command, stdin=-1, stdout=-1, stderr=-1, env={}
        )
        machine.sessions[session] = (process, " ".join(command))
        await socket.send_json({"type": "session_info", "session_id": session, "tty": False})
        listening = asyncio.create_task(self.listen(socket, process))
        assert process.stdout
        assert process.stderr
        await asyncio.gather(self.pump(socket, STDOUT, process.stdout), self.pump(socket, STDERR, process.stderr))
        code = await process.wait()
        machine.sessions.pop(session, None)
        with suppress(RuntimeError, WebSocketDisconnect):
            await socket.send_bytes(bytes([EXIT, 128 - code if code < 0 else code]))
        with suppress(asyncio.TimeoutError, WebSocketDisconnect):
            await asyncio.wait_for(listening, 5)  # as the real one does

    def sandbox(self, machine: Machine, directory: str) -> list[str]:
        mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        mounts += ["--tmpfs", "/root", "--tmpfs", "/tmp", "--tmpfs", "/home", "--tmpfs", "/var"]
        mounts += ["--bind", str(machine.root), "/var/tmp", "--chdir", directory]
        return [self.bwrap, *mounts, "--unshare-pid", "--die-with-parent", "--clearenv", "--setenv", "PATH", PATH, "--"]

    async def pump(self, socket: WebSocket, stream: int, source: asyncio.StreamReader) -> None:
        while data := await source.read(65536):
            with suppress(RuntimeError, WebSocketDisconnect):
                await socket.send_bytes(bytes([stream]) + data)

    async def listen(self, socket: WebSocket, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        with suppress(WebSocketDisconnect, RuntimeError, BrokenPipeError, ConnectionResetError):
            while True:
                frame = await socket.receive_bytes()
                if frame[0] == STDIN:
                    process.stdin.write(frame[1:])
                    await process.stdin.drain()
                elif frame[0] == STDIN_EOF:
                    process.stdin.close()

    async def gateway(self, request: Request) -> Response:
        """Adds the key for machines that the connection is for; anybody else is nobody."""
        self.gateway_headers.append(request.headers)
        assert request.client
        machine = self.machine_at(request.client.port)
        if machine is None:
            return JSONResponse({"error": "this is for Sprites"}, 401)
        connection = self.connections.get(request.path_params["connection"])
        if connection is None or not machine.name.startswith(connection.name_prefix):
            return JSONResponse({"error": "policy denies all sprites by default"}, 403)
        async with httpx.AsyncClient(verify=False) as client:
            answer = await client.request(
                request.method,
                f"{connection.base_url}/{request.path_params['path']}",
                content=await request.body(),
                headers={"Authorization": f"Bearer {connection.key}", "Content-Type": "application/json"},
            )
        return Response(answer.content, answer.status_code, {"Content-Type": "application/json"})

    def machine_at(self, port: int) -> Machine | None:
        """Whose process holds the other end of a connection from this port."""
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {f"socket:[{fields[9]}]" for fields in lines if int(fields[1].split(":")[1], 16) == port}
        for machine in self.machines.values():
            for process, _ in list(machine.sessions.values()):
                if any(held_by(pid) & inodes for pid in below(process.pid)):
                    return machine
        return None


def below(pid: int) -> list[int]:
    """A process's descendants, nearest first."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop(0)
        with suppress(FileNotFoundError, ProcessLookupError):
            children = [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
            found += children
            waiting += children
    return found


def held_by(pid: int) -> set[str]:
    found = set()
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError, ProcessLookupError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


@contextmanager
def sprites() -> Iterator[SpritesServer]:
    """A served one, until the block ends."""
    place = Path(tempfile.mkdtemp(prefix="hb-sprites-"))
    server = SpritesServer(place, Bubblewrap(place / "bwrap").bwrap)
    web = uvicorn.Server(uvicorn.Config(server.app, port=0, log_level="error", ws="websockets-sansio", lifespan="off"))
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    eventually(lambda: web.started, what="the server listens")
    server.url = f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        web.should_exit = True
        thread.join(10)
        shutil.rmtree(place, ignore_errors=True)
