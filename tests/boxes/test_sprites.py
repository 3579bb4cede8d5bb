"""What the Sprites provider promises beyond the contract: the network first, nothing told without need, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.base.errors import HerdbookError, Unauthorized
from herdbook.boxes import sprites as module
from herdbook.boxes.findings import SPRITES_FIXES
from herdbook.boxes.provider import Box, BoxSpec
from herdbook.boxes.reaper import Reaped, reap
from herdbook.boxes.sprites import TOKENS, Sprites
from herdbook.testing.boxes import new_spec, run_python
from tests.boxes.filebook import FileBook
from tests.boxes.owner_process import LABEL, SPRITE_POINTS
from tests.boxes.sprites_server import TOKEN, SpritesServer

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TOKENS)
def test_both_names_of_the_token_are_read(name: str, sprites: Sprites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever followed the vendor's other page would be told that there is no token."""
    for each in TOKENS:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, TOKEN)
    provider = Sprites(tmp_path)
    assert list(provider.list()) == []


def test_the_network_is_closed_before_the_first_command(sprites: Sprites, sprites_served: SpritesServer) -> None:
    """An unrestricted machine is the provider's default: what runs before the policy may reach anything."""
    began = len(sprites_served.calls)
    box = sprites.create(new_spec())
    run_python(sprites, box, "print(1)")
    calls = [method + path.rpartition(module.machine_name(box.id))[2] for method, path in sprites_served.calls[began:]]
    assert calls.index("POST/policy/network") < min(calls.index("EXEC/exec"), calls.index("PUT/fs/write"))
    machine = sprites_served.machines[module.machine_name(box.id)]
    assert [{"domain": "127.0.0.1", "action": "allow"}] == machine.rules, "nothing but the gateway"
    sprites.destroy(box.id)


def test_a_machine_without_its_policy_is_not_kept(
    sprites: Sprites, sprites_served: SpritesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box whose network could not be closed would look like any other."""
    monkeypatch.setattr(Sprites, "_allowed", property(lambda self: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        sprites.create(BoxSpec(id="open-network", label="l"))
    assert "herdbook-open-network" not in sprites_served.machines


def test_nothing_is_told_about_who_calls(sprites: Sprites, sprites_served: SpritesServer) -> None:
    """The package looks at its surroundings and reports to the vendor which agent is at work, unless it is stopped."""
    began = len(sprites_served.headers)
    box = sprites.create(new_spec())
    sprites.put(box, "x", b"x")
    run_python(sprites, box, "print(1)")
    sprites.destroy(box.id)
    names = {name.lower() for headers in sprites_served.headers[began:] for name in headers}
    assert [] == [name for name in names if name.startswith("fly-client")]
    agents = {headers["user-agent"] for headers in sprites_served.headers[began:]}
    assert all(len(agent.split()) == 1 or agent.startswith("Python/") for agent in agents), agents


def test_neither_token_nor_environment_nor_arguments_are_in_sight(sprites: Sprites, sprites_served: SpritesServer) -> None:
    """The address of a request is in everybody's logs, and the token in a box would be the whole organisation's."""
    began = len(sprites_served.calls)
    box = sprites.create(new_spec())
    code = "import os, glob; print([open(p, 'rb').read() for p in glob.glob('/proc/[0-9]*/environ')], dict(os.environ))"
    execution = sprites.exec(box, [box.python, "-c", code, "argument-canary"], env={"TOKEN": "environment-canary"})
    said = b"".join(data for _, data in execution).decode()
    sprites.destroy(box.id)
    assert "environment-canary" in said
    assert "token-canary" not in said
    assert "canary" not in json.dumps(sprites_served.calls[began:])


def test_a_refusal_names_what_to_do_and_never_the_token(
    sprites: Sprites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in an error is a token in a log."""
    monkeypatch.setenv("SPRITES_TOKEN", "wrong-canary")
    provider = Sprites(tmp_path)
    with pytest.raises(Unauthorized) as refused:
        provider.list()
    assert "SPRITES_TOKEN" in refused.value.message
    assert "canary" not in refused.value.message


def test_it_says_what_is_missing(sprites: Sprites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box that cannot reach the record would be found out when its work is lost."""
    assert sprites.probe().ok, sprites.probe()
    assert list(sprites.list()) == [], "the probe leaves no machine behind"
    monkeypatch.delenv("HERDBOOK_SPRITES_CONNECTOR_ID")
    assert SPRITES_FIXES["no connector"] == Sprites(tmp_path).probe().fix
    monkeypatch.delenv("SPRITES_TOKEN")
    assert SPRITES_FIXES["no token"] == Sprites(tmp_path).probe().fix
    assert list(Sprites(tmp_path).list()) == []


def test_more_machines_than_a_page_are_all_listed(sprites: Sprites) -> None:
    """A machine on the second page would never be reaped, and paid for every minute."""
    module_page = module.PAGE_MAX
    module.PAGE_MAX = 2  # type: ignore[misc]
    boxes = [sprites.create(new_spec(label="many")) for _ in range(5)]
    try:
        assert sorted(box.id for box in boxes) == sorted(box.id for box in sprites.list("many"))
    finally:
        module.PAGE_MAX = module_page  # type: ignore[misc]
        for box in boxes:
            sprites.destroy(box.id)


@pytest.mark.parametrize("point", SPRITE_POINTS)
def test_an_owner_of_a_machine_killed_at_any_point_leaves_nothing_after_one_reap(
    point: str, sprites: Sprites, sprites_served: SpritesServer, tmp_path: Path
) -> None:
    """A machine elsewhere runs on, and is paid for, until somebody who knows of it ends it."""
    state = tmp_path / "s"
    state.mkdir()
    command = [sys.executable, "-m", "tests.boxes.owner_process", str(state), str(tmp_path / "book"), point, "token", "sprites"]
    paths = [str(ROOT), *filter(None, sys.path)]
    died = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, timeout=60, check=False)
    assert died.returncode == -9
    book = FileBook(tmp_path / "book")
    (row,) = book.box_list(label=LABEL, live=True, limit=10)["boxes"]
    assert [Reaped(row["box"], "its owner is dead")] == reap(book, sprites, LABEL)
    assert {} == sprites_served.machines
    assert [] == reap(book, sprites, LABEL)


def test_a_machine_that_is_gone_ends_its_program(sprites: Sprites) -> None:
    """A program whose machine was destroyed elsewhere would be waited for until its deadline."""
    box: Box = sprites.create(new_spec())
    execution = sprites.exec(box, [box.python, "-u", "-c", "print('up'); import time; time.sleep(600)"])
    for _ in execution:
        sprites.destroy(box.id)
    assert execution.exit.code == 137
    with pytest.raises(HerdbookError):
        sprites.put(box, "x", b"x")
