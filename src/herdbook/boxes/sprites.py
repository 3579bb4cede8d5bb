"""Boxes that are Fly Sprites: a virtual machine of its own for each, somewhere else, through the vendor's own package.

A box's network is closed before its first command, but for the provider's gateway, which is also how it reaches the record: with
the connection HERDBOOK_SPRITES_CONNECTOR_ID names, and without a credential in the box. The token stays with this process. What
only the provider can promise (that a machine is isolated, that a name outside the policy is refused) is not ours to see.
"""

from __future__ import annotations

import hashlib
import io
import os
import queue
import re
import secrets
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from herdbook.base import settings
from herdbook.base.errors import (
    CannotIsolate,
    Forbidden,
    HerdbookError,
    InvalidRequest,
    NotFound,
    RequestConflict,
    Unauthorized,
    Unavailable,
)
from herdbook.boxes import recipe
from herdbook.boxes.directory import parts_inside
from herdbook.boxes.findings import sprites_finding
from herdbook.boxes.launch import WATCHED
from herdbook.boxes.provider import HOME_IN_BOX, Box, BoxLimits, BoxSpec, Chunk, Finding, Isolation, Stream, demand
from herdbook.boxes.spawn import LAUNCH, order_bytes, order_for
from herdbook.boxes.watched import WatchedExecution

if TYPE_CHECKING:
    from sprites import Sprite, SpritesClient

TOKENS: Final = ("SPRITES_TOKEN", "SPRITE_TOKEN")  # the vendor's pages use both
PREFIX: Final = "herdbook-"  # of every machine's name, so that a connector's policy can name them, and listing is one question
PAGE_MAX: Final = 50
OWN: Final = "/var/tmp/herdbook"  # noqa: S108  (writable for any user of the machine, which is the box's alone)
HOME: Final = f"{OWN}/box"  # beside it, the launcher and files on their way
PYTHON: Final = "python3"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KILLED: Final = 137
NOT_PLACED: Final = 3
KILL_SECONDS: Final = 1
PROBE_SECONDS: Final = 60.0

# Runs inside: moves a file to its place step by step, never through a link, as directory.py does here.
PLACE = f"""
import os, sys
fresh, home, mode, *parts = sys.argv[1:]
try:
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    for part in parts[:-1]:
        try:
            os.mkdir(part, 0o755, dir_fd=folder)
        except FileExistsError:
            pass
        folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    os.chmod(fresh, int(mode, 8))
    os.rename(fresh, parts[-1], dst_dir_fd=folder)
except OSError as problem:
    os.unlink(fresh)
    print(problem.strerror)
    sys.exit({NOT_PLACED})
"""


class Sprites:
    """Virtual machines by name. Everything about a box is in its machine's name and labels, and nowhere else."""

    name = "sprites"
    isolation: Isolation = "microvm"

    def __init__(self, state_dir: Path | str, *, environ: Mapping[str, str] = os.environ) -> None:
        chosen = settings.load(environ)
        self._token = next((environ[name] for name in TOKENS if environ.get(name)), "")
        self._url, self._connector = chosen.sprites_url.rstrip("/"), chosen.sprites_connector_id

    def probe(self) -> Finding:
        if not self._token or not self._connector:
            return sprites_finding("no token" if not self._token else "no connector")
        box_id = f"probe-{secrets.token_hex(6)}"
        try:
            box = self.create(BoxSpec(id=box_id, label="herdbook-probe", limits=BoxLimits(wall_seconds=PROBE_SECONDS)))
            execution = self.exec(box, [PYTHON, "-c", "print('up')"])
            said = b"".join(data for _, data in execution)
            rules = self._machine(box_id).get_network_policy().rules
        except HerdbookError as problem:
            return sprites_finding(problem.message)
        finally:
            with suppress(HerdbookError):  # because what went wrong first is what is to be told; the machine has its label
                self.destroy(box_id)
        if said != b"up\n" or tuple(rule.domain for rule in rules) != self._allowed:
            return sprites_finding(f"the machine said {said[-200:]!r}, and its network is open to {rules}")
        return Finding(ok=True, what="sprites: a machine started and its network was closed (a virtual machine, elsewhere)")

    def create(self, spec: BoxSpec) -> Box:
        """The network first: a machine whose policy could not be set is not kept."""
        demand(self, spec.minimum)
        from sprites import NetworkPolicy, PolicyRule  # an extra

        labels = ["herdbook", f"box.{spec.id}", f"label.{spec.label}", f"limits.{limits_as_text(spec.limits)}"]
        with self._spoken():
            if any(box.id == spec.id for box in self.list()):
                raise RequestConflict(f"there is a box {spec.id!r} already: destroy it, or choose another id")
            machine = self._client.create_sprite(machine_name(spec.id), labels=labels)
            try:
                machine.update_network_policy(
                    NetworkPolicy(rules=[PolicyRule(domain=domain, action="allow") for domain in self._allowed])
                )
                self._write(machine, f"{OWN}/launch.py", LAUNCH.read_bytes())
                self._write(machine, f"{HOME}/.made", b"")
                self._run_plain(machine, ["rm", f"{HOME}/.made"])
            except BaseException:  # because a half-made machine costs money until the reaper comes
                machine.destroy()
                raise
        return self._box(spec.id, spec.label)

    def put(self, box: Box, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Up under a name of its own, then moved to its place from inside, in one step."""
        parts = parts_inside(path)
        if not parts[-1]:
            raise InvalidRequest(f"{path!r} names a directory: name a file in it")
        fresh = f"{OWN}/put-{secrets.token_hex(8)}"
        with self._spoken():
            machine = self._machine(box.id)
            self._write(machine, fresh, data)
            code, said = self._run_plain(machine, [PYTHON, "-I", "-S", "-c", PLACE, fresh, HOME, f"{mode & 0o777:o}", *parts])
        if code != 0:
            raise InvalidRequest(f"{path!r} cannot be a file in the box: {said.strip() or f'exit code {code}'}")

    def exec(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float | None = None,
    ) -> WatchedExecution:
        """Arguments and environment go in on standard input: in the address of the request, they would be in logs."""
        inside = "/".join((HOME, *parts_inside(cwd or HOME_IN_BOX))).rstrip("/")
        with self._spoken():
            machine = self._machine(box.id)
        limits = limits_from_labels(machine.labels)
        base = {"PATH": PATH, "HOME": HOME, "LANG": "C.UTF-8"}
        order = order_for(argv, env={**base, **(env or {})}, cwd=inside, limits=recipe.limits_as_pairs(limits))
        return WatchedExecution(
            SpriteProgram(machine, order_bytes(order)),
            timeout_seconds=limits.wall_seconds if timeout_seconds is None else timeout_seconds,
        )

    def destroy(self, box_id: str) -> None:
        from sprites.exceptions import NotFoundError

        with self._spoken(), suppress(NotFoundError):  # because it is gone, and that was wanted
            self._client.destroy_sprite(machine_name(box_id))

    def list(self, label: str | None = None) -> Sequence[Box]:
        from sprites.types import ListOptions

        if not self._token:
            return []  # nothing of ours can be there, or nothing that we could end
        found, token = [], None
        with self._spoken():
            while True:
                page = self._client.list_sprites(ListOptions(prefix=PREFIX, max_results=PAGE_MAX, continuation_token=token))
                found += [labels_of(each.labels) for each in page.sprites]
                token = page.next_continuation_token
                if not page.has_more:
                    break
        boxes = [self._box(told["box"], told["label"]) for told in found if "box" in told and "label" in told]
        return [box for box in boxes if label in (None, box.label)]

    @property
    def _allowed(self) -> tuple[str, ...]:
        """The one name a box may resolve."""
        return (urlsplit(self._url).hostname or "",)

    @cached_property
    def _client(self) -> SpritesClient:
        if not self._token:
            raise Unauthorized(sprites_finding("no token").fix)
        os.environ["SPRITES_CLIENT_SIGNALS"] = (
            "0"  # the package tells who calls, from this process's surroundings, unless told not to
        )
        try:
            from sprites import SpritesClient  # an extra
        except ImportError as problem:
            raise CannotIsolate(sprites_finding("no package").fix) from problem
        client = SpritesClient(self._token, base_url=self._url)
        weakref.finalize(self, client.close)
        return client

    def _machine(self, box_id: str) -> Sprite:
        return self._client.get_sprite(machine_name(box_id))

    def _box(self, box_id: str, label: str) -> Box:
        return Box(
            id=box_id,
            label=label,
            provider=self.name,
            isolation=self.isolation,
            home=HOME,
            python=PYTHON,
            record_url=f"{self._url}/v1/gateway/custom_api/{self._connector}/boxes/{box_id}",
        )

    def _write(self, machine: Sprite, path: str, data: bytes) -> None:
        (machine.filesystem("/") / path.lstrip("/")).write_bytes(data, mkdir_parents=True)

    def _run_plain(self, machine: Sprite, argv: Sequence[str]) -> tuple[int, str]:
        """A short program of ours, without the launcher."""
        done = machine.run(*argv, capture_output=True, timeout=PROBE_SECONDS)
        return done.returncode, ((done.stdout or b"") + (done.stderr or b"")).decode(errors="replace")

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        """The package's errors in our words; the token is in none of them."""
        _ = self._client
        from sprites.exceptions import AuthenticationError, NotFoundError, SpriteError

        try:
            yield
        except AuthenticationError as problem:
            raise Unauthorized("Sprites does not take this token: make a new one and set SPRITES_TOKEN") from problem
        except NotFoundError as problem:
            raise NotFound("there is no such box: it was destroyed, or never created") from problem
        except SpriteError as problem:
            said = str(problem).replace(self._token, "...")[-300:]
            if "status 403" in said:
                raise Forbidden(f"Sprites refuses: {said}") from problem
            raise Unavailable(f"Sprites does not do what it was asked: {said}") from problem


class SpriteProgram:
    """One program in a machine: the package calls back on its own loop, so what is said goes through a queue."""

    def __init__(self, machine: Sprite, order: bytes) -> None:
        self._machine, self._order = machine, order
        self._mark = secrets.token_hex(8)  # what its session is known by, before the server has named it
        self._said: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()
        self._code = KILLED
        self._thread = threading.Thread(target=self._run, name="box-sprite", daemon=True)
        self._thread.start()

    def chunks(self) -> Iterator[Chunk]:
        while (chunk := self._said.get()) is not None:
            yield chunk

    def kill(self) -> None:
        """The session over there: the package's own time limit would only stop listening to it."""
        from sprites.exceptions import SpriteError
        from sprites.session import kill_session

        try:
            for session in self._machine.list_sessions():
                if self._mark in session.command:
                    kill_session(self._machine, session.id, signal="SIGTERM", timeout=KILL_SECONDS)
        except SpriteError:
            self._said.put(None)  # because the machine is gone, or cannot be reached: nothing more will be heard

    def finish(self) -> int:
        self._thread.join(KILL_SECONDS)
        return self._code

    def _run(self) -> None:
        from sprites.exceptions import ExecError, SpriteError

        try:
            command = self._machine.command(
                PYTHON, "-I", "-S", f"{OWN}/launch.py", WATCHED, self._mark,
                stdin=io.BytesIO(self._order), stdout=Ear(self._said, "stdout"), stderr=Ear(self._said, "stderr"),
            )  # fmt: skip
            command.run()
            self._code = 0
        except ExecError as ended:
            self._code = ended.exit_code()
        except SpriteError as problem:
            self._said.put(("stderr", f"the machine was lost: {type(problem).__name__}\n".encode()))
        finally:
            self._said.put(None)


class Ear(io.RawIOBase):
    """Takes one stream of a program."""

    def __init__(self, said: queue.SimpleQueue[Chunk | None], stream: Stream) -> None:
        self._queue, self._stream = said, stream

    def write(self, data: Any) -> int:
        self._queue.put((self._stream, bytes(data)))
        return len(data)


def machine_name(box_id: str) -> str:
    """A machine is named like a host; an id that is not gets a digest."""
    simple = re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?", box_id)
    return PREFIX + (box_id if simple else f"x{hashlib.sha256(box_id.encode()).hexdigest()[:40]}")


def limits_as_text(limits: BoxLimits) -> str:
    """What the launcher and the deadline need, short enough for a label."""
    return "-".join(str(int(getattr(limits, name))) for name in KEPT_LIMITS)


KEPT_LIMITS: Final = ("memory_bytes", "processes", "file_bytes", "cpu_seconds", "wall_seconds", "open_files")


def limits_from_labels(labels: Sequence[str]) -> BoxLimits:
    told = labels_of(labels).get("limits", "")
    values = [int(text) for text in told.split("-") if text.isdecimal()]
    return BoxLimits(**dict(zip(KEPT_LIMITS, values, strict=True))) if len(values) == len(KEPT_LIMITS) else BoxLimits()


def labels_of(labels: Sequence[str]) -> dict[str, str]:
    return {name: value for name, dot, value in (label.partition(".") for label in labels) if dot}
