"""Files that a person names: whatever stands at that name, the answer is a sentence, at once, and nothing else is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ADD = ("gateway", "add", "github", "--to", "https://api.github.com", "--bearer", "--secret-file")
FAN_OUT = ("fanout", "acme/ci", "--provider", "unsafe-process")
READS: dict[str, tuple[str, ...]] = {
    "gateway add --secret-file": ADD,
    "gateway serve --connector-key-file": ("gateway", "serve", "--connector-key-file"),
    "serve --key-file": ("serve", "--port", "0", "--key-file"),
    "fanout --variants": (*FAN_OUT, "--variants"),
    "import": ("import", "agents-md", "--entity", "acme/ci"),
    "watch status --config": ("watch", "status", "--config"),
}
WRITES: dict[str, tuple[str, ...]] = {
    "export agents-md": ("export", "--entity", "acme/ci", "agents-md"),
    "calibrate --svg": ("calibrate", "acme/ci", "--svg"),
}


@pytest.fixture
def odd(tmp_path: Path) -> dict[str, Path]:
    """What no secret and no text is, and what cannot be written."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # holds nothing, and would fill all memory
    return {
        **{name: tmp_path / name for name in ("folder", "pipe", "huge")},
        "endless": Path("/dev/zero"),
        "full": Path("/dev/full"),
    }


@pytest.mark.parametrize("kind", ["folder", "pipe", "huge", "endless", "full"])
@pytest.mark.parametrize("command", READS)
def test_what_is_no_file_is_refused_when_it_is_to_be_read(command: str, kind: str, herdbook, odd) -> None:
    """A command would wait for ever, or take all memory of the machine, for one word that was mistyped."""
    end = ("--", "true") if command.startswith("fanout") else ()
    told = herdbook(*READS[command], str(odd[kind]), *end)
    assert told.code in (1, 2), told.err
    assert str(odd[kind]) in told.err
    assert "should not have happened" not in told.err


@pytest.mark.parametrize("kind", ["folder", "pipe", "full"])
@pytest.mark.parametrize("command", WRITES)
def test_what_is_no_file_is_not_written_to(command: str, kind: str, herdbook, odd) -> None:
    """A pipe without a reader hangs the command, and a device takes what was meant for a file."""
    assert 0 == herdbook("write", "acme/ci", "tz", '"UTC"', "--why", "w", "--no-session").code
    told = herdbook(*WRITES[command], str(odd[kind]))
    assert told.code in (1, 2), told.err
    assert f"{odd[kind]} is no " in told.err


@pytest.mark.parametrize("command", WRITES)
def test_a_link_to_nothing_is_not_written_through(command: str, herdbook, tmp_path: Path) -> None:
    """Whoever can leave a link in a working copy could have any file of the user's made."""
    assert 0 == herdbook("write", "acme/ci", "tz", '"UTC"', "--why", "w", "--no-session").code
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    told = herdbook(*WRITES[command], str(tmp_path / "out"))
    assert told.code in (1, 2), told.err
    assert "is a link to" in told.err
    assert not (tmp_path / "nowhere").exists()


def test_a_link_to_a_file_is_followed_and_its_permissions_kept(herdbook, tmp_path: Path) -> None:
    """Many have CLAUDE.md as a link to AGENTS.md: a file in its place would part the two."""
    assert 0 == herdbook("write", "acme/ci", "tz", '"UTC"', "--why", "w", "--no-session").code
    real = tmp_path / "AGENTS.md"
    real.write_text("Ours.\n")
    real.chmod(0o640)
    (tmp_path / "CLAUDE.md").symlink_to(real)
    assert 0 == herdbook("export", "agents-md", str(tmp_path / "CLAUDE.md"), "--entity", "acme/ci").code
    assert (tmp_path / "CLAUDE.md").is_symlink()
    assert real.read_text().startswith("Ours.\n")
    assert "herdbook: begin" in real.read_text()
    assert 0o640 == real.stat().st_mode & 0o777


def test_a_socket_without_a_path_is_refused(herdbook) -> None:
    """The system would pick a name that is in no folder, so that everybody on the machine could connect."""
    for serve in (("serve",), ("gateway", "serve")):
        told = herdbook(*serve, "--unix", "")
        assert (1, True) == (told.code, "a socket needs a path" in told.err), told.err


def test_a_link_out_of_the_folder_is_pushed_into_no_box(herdbook: Callable, tmp_path: Path) -> None:
    """A working copy with a link to somebody's keys would carry them into every box."""
    (tmp_path / "keys").write_text("canary")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "innocent").symlink_to(tmp_path / "keys")
    told = herdbook(*FAN_OUT, "--files", str(tmp_path / "files"), "--vary", "N=1", "--", "cat", "innocent")
    assert (1, True) == (told.code, "leads out of" in told.err), told.err


def test_more_than_the_boxes_may_get_is_refused_before_it_is_read(herdbook, tmp_path: Path) -> None:
    """One forgotten disk image would be read whole, once, to find out that it is too large."""
    (tmp_path / "files").mkdir()
    with (tmp_path / "files" / "image").open("wb") as file:
        file.truncate(1 << 40)
    told = herdbook(*FAN_OUT, "--files", str(tmp_path / "files"), "--vary", "N=1", "--", "true")
    assert (1, True) == (told.code, "name what the boxes need alone" in told.err), told.err
