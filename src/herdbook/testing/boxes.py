"""What every box provider promises, as tests: subclass `BoxContract`, give it a provider, and let pytest run it.

    class TestMine(BoxContract):
        @pytest.fixture
        def provider(self, tmp_path): return MyProvider(tmp_path)

It uses only the five methods and the box's own interpreter, so it says nothing about how a provider works.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from herdbook.base.errors import CannotIsolate, HerdbookError, InvalidRequest, NotFound
from herdbook.base.ids import new_name
from herdbook.boxes.provider import TIMEOUT_EXIT_CODE, WEAKEST_FIRST, Box, BoxLimits, BoxSpec, Exit, Provider, at_least

PATIENCE_SECONDS = 20.0
BIG_BYTES = 10 * 1024 * 1024
# What a program may find beside what it was given; none of it comes from the host.
BASE_ENV = {"PATH", "HOME", "LANG", "LC_CTYPE", "PWD"}
ESCAPES = ("../x", "/etc/x", "/box/../x", "a/../../x", "/boxes/x", "..", "", "/", "a/", "a\0b", "x" * 300)


@dataclass(frozen=True, slots=True)
class Result:
    """What a program said and how it ended."""

    exit: Exit
    stdout: bytes
    stderr: bytes

    @property
    def code(self) -> int:
        return self.exit.code

    def json(self) -> Any:
        return json.loads(self.stdout)


def run(
    provider: Provider,
    box: Box,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_seconds: float | None = None,
) -> Result:
    """Run to the end and collect."""
    said: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    execution = provider.exec(box, argv, env=env, cwd=cwd, timeout_seconds=timeout_seconds)
    for stream, data in execution:
        said[stream].append(data)
    return Result(execution.exit, b"".join(said["stdout"]), b"".join(said["stderr"]))


def run_python(provider: Provider, box: Box, code: str, *arguments: str, timeout_seconds: float | None = None) -> Result:
    return run(provider, box, [box.python, "-I", "-c", code, *arguments], timeout_seconds=timeout_seconds)


def eventually(condition: Callable[[], object], *, what: str) -> None:
    """Wait until it holds; a test never sleeps for a fixed time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"did not happen in {PATIENCE_SECONDS} s: {what}"
        pause.wait(0.01)


def new_spec(*, label: str = "contract", limits: BoxLimits | None = None) -> BoxSpec:
    return BoxSpec(id=new_name("box").replace("_", "-"), label=label, limits=limits or BoxLimits())


# A program, its child and its grandchild, each holding a lock on a file of its own for as long as it lives.
TREE = """
import fcntl, subprocess, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
if sys.argv[2:]:
    subprocess.Popen([sys.executable, "-I", "-c", sys.orig_argv[sys.orig_argv.index("-c") + 1], *sys.argv[2:]])
print("up", flush=True)
time.sleep(600)
"""
FAMILY = ("parent", "child", "grandchild")
TAKE_LOCK = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"


class BoxContract:
    """Subclass it with a `provider` fixture."""

    @pytest.fixture
    def box(self, provider: Provider) -> Iterator[Box]:
        box = provider.create(new_spec())
        yield box
        provider.destroy(box.id)

    def test_a_new_box_is_empty_and_says_what_it_is(self, provider: Provider, box: Box) -> None:
        """A box that starts with another's files, or lies about its isolation, would be trusted with the wrong things."""
        assert (provider.name, provider.isolation) == (box.provider, box.isolation)
        assert provider.isolation in WEAKEST_FIRST
        assert run_python(provider, box, "import os, json; print(json.dumps(os.listdir()))").json() == []

    def test_a_put_file_arrives_whole(self, provider: Provider, box: Box) -> None:
        """Bytes that change on the way would make a box run something else than it was given."""
        every_byte = bytes(range(256)) * 1000
        provider.put(box, "data/deep/blob.bin", every_byte)
        provider.put(box, "/box/tool.sh", b"#!/bin/sh\necho ran\n", mode=0o755)
        code = "import sys; sys.stdout.buffer.write(open('data/deep/blob.bin', 'rb').read())"
        assert every_byte == run_python(provider, box, code).stdout
        assert run(provider, box, ["./tool.sh"]).stdout == b"ran\n"

    def test_a_put_file_replaces_and_is_writable_inside(self, provider: Provider, box: Box) -> None:
        """A file that the box's own programs cannot change would break the first tool that edits it."""
        provider.put(box, "note", b"first, and longer")
        provider.put(box, "note", b"second")
        code = "f = open('note', 'a'); f.write('!'); f.close(); print(open('note').read())"
        assert run_python(provider, box, code).stdout == b"second!\n"

    @pytest.mark.parametrize("path", ESCAPES)
    def test_a_path_that_leads_outside_is_refused(self, provider: Provider, box: Box, path: str) -> None:
        """A path that escapes would let whoever names files write on the host."""
        with pytest.raises(InvalidRequest):
            provider.put(box, path, b"x")
        assert run_python(provider, box, "import os, json; print(json.dumps(os.listdir()))").json() == []

    @pytest.mark.parametrize("path", ["with space", "-rf", "ünïcödé 漢字", "new\nline", "'\"$(x)", ".hidden", "..dots", "a//b"])
    def test_an_odd_file_name_is_only_a_name(self, provider: Provider, box: Box, path: str) -> None:
        """A name that some shell or option parser reads would do more than name a file."""
        provider.put(box, path, b"found")
        assert run_python(provider, box, "import sys; print(open(sys.argv[1]).read())", path).stdout == b"found\n"

    def test_a_link_left_in_the_box_is_not_followed_out_of_it(self, provider: Provider, box: Box) -> None:
        """A link made inside and followed outside would let a box overwrite files of the host through the next put."""
        code = "import os; os.symlink('/etc', 'folder'); os.symlink('/etc/passwd', 'file'); os.mkfifo('pipe')"
        assert run_python(provider, box, code).code == 0
        with pytest.raises(InvalidRequest):
            provider.put(box, "folder/passwd", b"x")
        for name in ("file", "pipe"):
            provider.put(box, name, b"replaced")
            assert (
                run_python(
                    provider, box, "import os, sys; print(open(sys.argv[1]).read(), os.path.islink(sys.argv[1]))", name
                ).stdout
                == b"replaced False\n"
            )

    def test_output_comes_as_it_is_written_and_streams_stay_apart(self, provider: Provider, box: Box) -> None:
        """Output held back until the end would make a watcher blind; mixed streams would corrupt what is parsed."""
        code = (
            "import os, sys, time\nprint('one', flush=True)\n"
            "while not os.path.exists('go'): time.sleep(0.01)\n"
            "print('oops', file=sys.stderr, flush=True); print('two', flush=True)"
        )
        execution = provider.exec(box, [box.python, "-I", "-c", code])
        chunks = iter(execution)
        assert next(chunks) == ("stdout", b"one\n")  # while the program still runs: it waits for the file
        provider.put(box, "go", b"")
        rest = list(chunks)
        assert [chunk for chunk in rest if chunk[0] == "stderr"] == [("stderr", b"oops\n")]
        assert b"".join(data for stream, data in rest if stream == "stdout") == b"two\n"
        assert Exit(code=0) == execution.exit

    def test_big_output_is_not_lost(self, provider: Provider, box: Box) -> None:
        """Lost or reordered output would look like another result."""
        code = f"import sys; [sys.stdout.write('%09d\\n' % n) for n in range({BIG_BYTES // 10})]; sys.stderr.write('e' * 100000)"
        result = run_python(provider, box, code)
        assert b"".join(b"%09d\n" % n for n in range(BIG_BYTES // 10)) == result.stdout
        assert len(result.stderr) == 100_000

    @pytest.mark.parametrize("code", [0, 1, 7, 255])
    def test_the_exit_code_is_the_programs(self, provider: Provider, box: Box, code: int) -> None:
        """A wrong exit code would attest a failure as a success."""
        assert Exit(code=code) == run_python(provider, box, f"raise SystemExit({code})").exit

    @pytest.mark.parametrize("signal", [9, 15])
    def test_a_signal_is_told_as_shells_do(self, provider: Provider, box: Box, signal: int) -> None:
        """A program killed by a signal would pass for one that ended by itself."""
        assert 128 + signal == run_python(provider, box, f"import os; os.kill(os.getpid(), {signal})").code

    def test_a_program_that_is_not_there_is_127(self, provider: Provider, box: Box) -> None:
        """A typing error would look like a failing program."""
        result = run(provider, box, ["no-such-program"])
        assert result.code == 127
        assert b"no-such-program" in result.stderr

    @pytest.mark.parametrize("argv", [[], ["a\0b"]])
    def test_what_cannot_be_started_is_refused(self, provider: Provider, box: Box, argv: list[str]) -> None:
        """An argument list no system takes would fail somewhere deep, without a word."""
        with pytest.raises(InvalidRequest):
            provider.exec(box, argv)

    def test_the_environment_is_only_what_was_given(self, provider: Provider, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
        """The host's environment holds its keys: one variable that slips in is one secret lost."""
        monkeypatch.setenv("HOST_SECRET", "canary")
        given = {"GIVEN": "=a b\n'c'", "LONG": "x" * 100_000}
        code = "import os, json; print(json.dumps(dict(os.environ)))"
        seen = run(provider, box, [box.python, "-I", "-c", code], env=given).json()
        assert given == {name: value for name, value in seen.items() if name not in BASE_ENV}

    def test_a_given_variable_wins_over_the_base(self, provider: Provider, box: Box) -> None:
        """A PATH that cannot be chosen would decide which programs run."""
        assert run(provider, box, ["/bin/sh", "-c", "echo $PATH"], env={"PATH": "/here"}).stdout == b"/here\n"

    def test_the_working_directory_is_home_or_below(self, provider: Provider, box: Box) -> None:
        """A program started in the wrong place would read and write the wrong files."""
        provider.put(box, "sub/dir/x", b"")
        code = "import os; print(os.getcwd())"
        assert f"{box.home}\n" == run_python(provider, box, code).stdout.decode()
        for cwd in ("sub/dir", "/box/sub/dir"):
            assert f"{box.home}/sub/dir\n" == run(provider, box, [box.python, "-I", "-c", code], cwd=cwd).stdout.decode()
        with pytest.raises(InvalidRequest):
            provider.exec(box, ["true"], cwd="../..")

    def test_a_timeout_ends_the_whole_tree(self, provider: Provider, box: Box) -> None:
        """A child that outlives the timeout would go on spending, and writing, unseen."""
        seconds, all_up = 2.0, b"up\n" * len(FAMILY)
        ended = run_python(provider, box, TREE, *FAMILY, timeout_seconds=seconds)
        while ended.stdout != all_up and seconds < PATIENCE_SECONDS:  # a busy machine takes longer to start three programs
            seconds *= 2
            ended = run_python(provider, box, TREE, *FAMILY, timeout_seconds=seconds)
        assert ended.exit == Exit(code=TIMEOUT_EXIT_CODE, reason="timeout")
        assert ended.stdout == all_up, "all were running when time ran out"
        for member in FAMILY:
            taken = run_python(provider, box, TAKE_LOCK, member, timeout_seconds=PATIENCE_SECONDS)
            assert taken.code == 0, f"the {member} is dead and its lock free"

    def test_a_killed_execution_ends(self, provider: Provider, box: Box) -> None:
        """A program that cannot be stopped would hold its box for ever."""
        execution = provider.exec(box, [box.python, "-I", "-u", "-c", "print('up'); import time; time.sleep(600)"])
        for _ in execution:
            execution.kill()
            execution.kill()
        assert Exit(code=137, reason="killed") == execution.exit

    def test_files_stay_between_execs_and_processes_do_not(self, provider: Provider, box: Box) -> None:
        """Work that is lost between two commands, or a process left over from the first, would spoil the second."""
        code = "import subprocess, sys; open('kept', 'w').write('yes'); subprocess.Popen(['sleep', '600'])"
        began = time.monotonic()
        assert run_python(provider, box, code).code == 0
        assert time.monotonic() - began < PATIENCE_SECONDS, "a process left behind does not hold the exec"
        assert run_python(provider, box, "print(open('kept').read())").stdout == b"yes\n"

    def test_destroying_is_final_and_idempotent(self, provider: Provider) -> None:
        """A destroy that fails the second time would leave the reaper stuck on boxes that are gone."""
        box = provider.create(new_spec())
        provider.put(box, "x", b"x")
        provider.destroy(box.id)
        provider.destroy(box.id)
        provider.destroy("never-was")
        assert box.id not in [found.id for found in provider.list()]
        with pytest.raises(NotFound):
            provider.exec(box, ["true"])
        with pytest.raises(NotFound):
            provider.put(box, "y", b"y")

    def test_destroying_ends_what_runs(self, provider: Provider) -> None:
        """A program that survives its box would run on where nobody looks."""
        box = provider.create(new_spec())
        execution = provider.exec(box, [box.python, "-I", "-u", "-c", "print('up'); import time; time.sleep(600)"])
        for _ in execution:
            provider.destroy(box.id)
        assert execution.exit.code == 137

    def test_a_box_is_removed_whatever_it_left_behind(self, provider: Provider) -> None:
        """A box that can make itself unremovable would stay for ever."""
        box = provider.create(new_spec())
        code = (
            "import os\nos.makedirs('closed/inner'); os.chmod('closed/inner', 0); os.chmod('closed', 0)\n"
            "for n in range(1500):\n os.mkdir('d'); os.chdir('d')"
        )
        assert run_python(provider, box, code).code == 0
        provider.destroy(box.id)
        assert box.id not in [found.id for found in provider.list()]

    def test_boxes_are_listed_by_label(self, provider: Provider) -> None:
        """A reaper that misses a box leaks it; one that sees another label's box kills it."""
        ours = [provider.create(new_spec(label="ours")) for _ in range(2)]
        other = provider.create(new_spec(label="ours.too"))
        assert sorted(box.id for box in ours) == sorted(box.id for box in provider.list("ours"))
        assert {"ours", "ours.too"} <= {box.label for box in provider.list()}
        assert [other] == list(provider.list("ours.too")), "a listed box can be used as the one that was created"
        for box in (*ours, other):
            provider.destroy(box.id)
        assert list(provider.list("ours")) == []

    def test_an_id_is_used_once(self, provider: Provider, box: Box) -> None:
        """Two boxes under one id would share a row, a lease and an end."""
        with pytest.raises(HerdbookError):
            provider.create(BoxSpec(id=box.id, label="another"))

    @pytest.mark.parametrize("name", ["", "../up", "a/b", "a@b", "-x", ".x", "x" * 65, "new\nline", "ü"])
    def test_a_name_is_only_a_name(self, name: str) -> None:
        """A name that is also a path or an option would reach where boxes must not."""
        with pytest.raises(InvalidRequest):
            BoxSpec(id=name, label="contract")
        with pytest.raises(InvalidRequest):
            BoxSpec(id="fine", label=name)

    def test_more_isolation_than_there_is_is_refused(self, provider: Provider) -> None:
        """A task that demands a minimum would run in less."""
        for level in WEAKEST_FIRST:
            spec = BoxSpec(id=new_name("box").replace("_", "-"), label="minimum", minimum=level)
            if at_least(provider.isolation, level):
                provider.destroy(provider.create(spec).id)
            else:
                with pytest.raises(CannotIsolate):
                    provider.create(spec)
        assert list(provider.list("minimum")) == []

    def test_boxes_do_not_share_files(self, provider: Provider, box: Box) -> None:
        """One run's leftovers in another's box would be credited to the wrong one."""
        other = provider.create(new_spec())
        provider.put(box, "mine", b"x")
        assert run_python(provider, other, "import os; print(os.listdir())").stdout == b"[]\n"
        provider.destroy(other.id)
