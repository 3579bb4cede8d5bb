"""The whole loop through the official SDK's client, over both transports, with a connection and without one."""

from __future__ import annotations

import pytest

from herdbook.base.approach import dead_end_key
from tests.mcp.clients import MODES, Agent, over_http, over_stdio, run
from tests.rest.serving import KEY

pytestmark = pytest.mark.slow


async def whole_loop(agent: Agent, session: dict[str, str]) -> None:
    """What an agent does from its first call to its last."""
    task = {"task": "make the checkout tests pass"}
    nothing = await agent.call("brief", entity="acme/checkout", **task, **session)
    assert "Nothing is known about acme/checkout yet" in nothing.text
    session = {"session": nothing.data["session"]}
    wrote = await agent.call("write", entity="acme/checkout", key="tz", value='{"env": {"TZ": "UTC"}}', why="dates", **session)
    assert (1, "unproven") == (wrote.data["version"], wrote.data["standing"])
    assert "understood `value`, sent as text, as an object" in wrote.text
    await agent.call("dead_end", entity="acme/checkout", key="sleep", value="sleep(5)", why="it only hides the race", **session)
    for spaced in ("swap in  the async client", "swap in the async client"):
        tried = await agent.call("dead_end", entity="acme/checkout", approach=spaced, why="it deadlocks", **session)
    assert (dead_end_key("swap in the async client"), 0.8) == (tried.data["key"], tried.data["confidence"])
    known = await agent.call("brief", entity="acme/checkout", **task, **session)
    assert ["tz"] == [entry["key"] for entry in known.data["entries"]]
    assert {"sleep", tried.data["key"]} == {entry["key"] for entry in known.data["dead_ends"]}
    assert {"env": {"TZ": "UTC"}} == known.data["entries"][0]["value"]
    assert ["tz"] == [found["key"] for found in (await agent.call("search", query="dates", **session)).data["results"]]
    await agent.call("record_action", tool="pytest", args="-q", ok="true", **session)
    await agent.call("record_context", name="prompt", text="fix it", **session)
    await agent.call("attempt", result="failure", used=["tz"], **session)
    done = await agent.call("commit_outcome", type="success", used="tz", ref="build-1", **session)
    assert (True, False, []) == (done.data["trainable"], done.data["attested"], done.data["missing"])
    assert [("tz", 0.5, 0.515)] == [(m["key"], m["before"], m["after"]) for m in done.data["moved"] if m["how"] == "used"]
    assert done.data | {"understood": None} == (
        await agent.call("commit_outcome", type="success", used="tz", ref="build-1", **session)
    ).data | {"understood": None}
    assert "0.515" in (await agent.call("explain", entity="acme/checkout", key="tz")).text
    trace = await agent.call("trace", ref="build-1")
    assert ("make the checkout tests pass", 1) == (trace.data["task"], len(trace.data["actions"]))
    assert {"tz", "sleep", tried.data["key"]} == {read["key"] for read in trace.data["reads"]}
    await agent.call("write", entity="acme/checkout", key="tz", value={"env": {"TZ": "CET"}}, why="moved", **session)
    assert [1, 2] == [v["version"] for v in (await agent.call("history", entity="acme/checkout", key="tz")).data["versions"]]
    assert "value" in [c["field"] for c in (await agent.call("diff", entity="acme/checkout", key="tz")).data["changed"]]
    assert ["acme/checkout"] == [path["entity"] for path in (await agent.call("list")).data["paths"]]
    assert 3 == (await agent.call("stats")).data["counts"]["entries"]


@pytest.mark.parametrize("mode", MODES)
def test_the_loop_over_standard_input_and_output(tmp_path, mode) -> None:
    """An agent that starts us as its own could not do what the record is for."""

    async def work() -> None:
        async with over_stdio(tmp_path, mode=mode) as agent:
            await whole_loop(agent, {})

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_the_loop_over_http(url, mode) -> None:
    """An agent elsewhere could not do what the record is for."""

    async def work() -> None:
        async with over_http(url, key=KEY, mode=mode) as agent:
            await whole_loop(agent, {})

    run(work)


@pytest.mark.parametrize("shown", ["Basic abc", f"Bearer {'x' * 20}"])
def test_without_the_key_nobody_gets_in(server, shown) -> None:
    """The tools would be a way around the server's door."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    reply = server.ask("POST", "/mcp", body, headers={"Content-Type": "application/json", "Authorization": shown})
    assert (401, "unauthorized") == (reply.status, reply.code)


def test_each_connection_is_a_run_of_its_own(url) -> None:
    """What one agent was given would be charged for what another one did."""

    async def work() -> None:
        async with over_http(url, key=KEY) as one, over_http(url, key=KEY) as other:
            runs = [(await agent.call("brief", entity="acme", task="t")).data["session"] for agent in (one, other, one)]
            assert (runs[0], True) == (runs[2], runs[0] != runs[1])
            assert "Nothing moved" in (await other.call("commit_outcome", type="failure")).text

    run(work)


def test_a_call_without_a_connection_says_which_run_it_began(url) -> None:
    """Where each request stands alone, an outcome would belong to no run that was given anything."""

    async def work() -> None:
        async with over_http(url, key=KEY, mode="auto") as agent:
            begun = await agent.call("brief", entity="acme")
            assert f"send session='{begun.data['session']}'" in begun.text
            refused = await agent.call("commit_outcome", type="success")
            assert "say which run this is about" in refused.text
            assert not (await agent.call("commit_outcome", type="success", session=begun.data["session"])).failed

    run(work)


def test_runs_of_one_name_stay_with_their_tenants(server, url) -> None:
    """One customer's task would be kept as what another one was asked to do, and be read there."""

    async def work() -> None:
        names = ("acme", "globex")
        keys = [server.post("tenant_create", {"tenant": name}).json["key"] for name in names]
        async with over_http(url, key=keys[0]) as one, over_http(url, key=keys[1]) as two:
            for agent, name in ((one, "acme"), (two, "globex")):
                assert not (await agent.call("brief", entity="a", session="nightly", task=f"asked by {name}")).failed
            for agent, name in ((one, "acme"), (two, "globex")):
                assert not (await agent.call("commit_outcome", session="nightly", type="success", ref="r")).failed
                told = str((await agent.call("trace", ref="r")).data)
                assert [name] == [each for each in names if f"asked by {each}" in told]

    run(work)


def test_two_clients_on_one_file_lose_nothing(tmp_path) -> None:
    """Two agents of one person, each with a process of its own on the same record, would overwrite each other."""

    async def writing(agent: Agent, name: str) -> None:
        for number in range(20):
            await agent.call("write", entity="acme", key=f"{name}-{number}", value=number, why="w")
            await agent.call("write", entity="acme", key="shared", value=f"{name}-{number}", why="w")

    async def work() -> None:
        import anyio

        async with over_stdio(tmp_path) as one, over_stdio(tmp_path) as other:
            async with anyio.create_task_group() as both:
                both.start_soon(writing, one, "one")
                both.start_soon(writing, other, "other")
            keys = {entry["key"] for entry in (await one.call("list", entity="acme")).data["paths"][0]["entries"]}
            assert 41 == len(keys)
            versions = (await other.call("history", entity="acme", key="shared")).data["versions"]
            assert list(range(1, 41)) == [version["version"] for version in versions]

    run(work)


def test_the_run_ends_with_its_process(tmp_path) -> None:
    """Runs of agents that have left would stay open for ever."""

    async def work() -> None:
        async with over_stdio(tmp_path) as agent:
            session = (await agent.call("brief", entity="acme")).data["session"]
            assert (await agent.call("trace", ref=session)).data["ended_at"] is None
        async with over_stdio(tmp_path) as agent:
            trace = (await agent.call("trace", ref=session)).data
            assert trace["ended_at"] is not None
            assert ("mcp", "mcp") == (trace["agent"], trace["channel"])

    run(work)


def test_what_an_agent_writes_is_an_agents(tmp_path) -> None:
    """An agent on a person's machine would write with the person's own authority."""

    async def work() -> None:
        async with over_stdio(tmp_path) as agent:
            await agent.call("write", entity="acme", key="k", value=1, why="w")
            assert "agent" == (await agent.call("read", entity="acme", key="k")).data["origin"]

    run(work)


def test_a_server_that_is_away_is_said(tmp_path) -> None:
    """An agent would take silence for nothing being known."""

    async def work() -> None:
        async with over_stdio(tmp_path, HERDBOOK_URL="http://127.0.0.1:9") as agent:
            away = await agent.call("brief", entity="acme", task="t")
            assert (True, "unreachable") == (away.failed, away.code)
            assert "does not mean that nothing is known" in away.text

    run(work)
