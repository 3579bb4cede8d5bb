"""What is offered: tools with titles and hints, by the caller's scopes, under any prefix; resources and prompts."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp_types import TextContent, TextResourceContents

from herdbook.service.verbs import VERBS
from herdbook.surfaces.mcp.tools import FIELDS, TOOLS, offered
from tests.mcp.clients import over_stdio, run

PROMISED = (
    "brief search read write history diff dead_end record_action record_context commit_outcome explain trace list stats"
    " retrain calibrate export_training_data prove"
)
# Verbs no tool speaks, each with the reason.
WITHOUT_TOOL = {
    "start_session": "a connection's run begins with its first call",
    "end_session": "it ends with the connection",
    "attest": "an agent vouches for nothing",
    "revise_outcome": "somebody else finds out later; it is for people and programs",
}


def test_every_promised_tool_is_there() -> None:
    """An agent that was told about a tool would not find it."""
    assert [] == [name for name in PROMISED.split() if name not in {each.tool.name for each in offered()}]


def test_a_tool_is_there_when_its_verb_is() -> None:
    """A tool would be offered that can only fail."""
    assert [tool.name for tool in TOOLS if tool.verb in VERBS] == [each.tool.name for each in offered()]
    assert set() == set(WITHOUT_TOOL) & {each.verb.name for each in offered()}


@pytest.mark.parametrize("offer", list(offered()), ids=lambda offer: offer.tool.name)
def test_each_form_is_a_schema_that_says_what_fields_are_for(offer) -> None:
    """A client would refuse the whole list for one broken form, or a model fill in a field by guessing."""
    Draft202012Validator.check_schema(offer.schema)
    assert [] == [name for name in offer.properties if name not in FIELDS]
    assert "session" not in offer.schema.get("required", [])


@pytest.mark.slow
def test_titles_and_hints_are_set_and_the_prefix_is_put_before(tmp_path) -> None:
    """A client could not tell what only looks from what changes something; an agent would look for other names."""

    async def work() -> None:
        async with over_stdio(tmp_path, "--prefix", "amfs_", "--entity", "acme/ci") as agent:
            tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
            assert {"amfs_search", "amfs_read", "amfs_commit_outcome"} <= set(tools)
            assert all(name.startswith("amfs_") for name in tools)
            hints = {
                name: (t.annotations.read_only_hint, t.annotations.destructive_hint) for name, t in tools.items() if t.annotations
            }
            assert (True, False) == hints["amfs_search"]
            assert (False, False) == hints["amfs_write"]
            assert [] == [name for name, tool in tools.items() if not (tool.title and tool.description)]
            assert "entity" not in tools["amfs_brief"].input_schema.get("required", [])
            assert "acme/ci" == (await agent.call("amfs_brief")).data["entity"]
            assert "amfs_brief" in (agent.client.instructions or "")

    run(work)


@pytest.mark.slow
def test_resources_and_prompts(tmp_path) -> None:
    """A person could not put what is known, or a run, before their agent by hand."""

    async def work() -> None:
        async with over_stdio(tmp_path) as agent:
            await agent.call("write", entity="acme/naïve path", key="k", value="v", why="w")
            done = await agent.call("commit_outcome", type="success", task_input="t")
            [resource] = (await agent.client.list_resources()).resources
            assert "acme/naïve path" == resource.name
            [page] = (await agent.client.read_resource(resource.uri)).contents
            assert isinstance(page, TextResourceContents)
            assert "`k = " in page.text
            [trace] = (await agent.client.read_resource(f"herdbook://trace/{done.data['ref']}")).contents
            assert isinstance(trace, TextResourceContents)
            assert '"task"' in trace.text
            assert 2 == len((await agent.client.list_resource_templates()).resource_templates)
            with pytest.raises(MCPError, match="there is no resource"):
                await agent.client.read_resource("file:///etc/passwd")
            with pytest.raises(MCPError, match="not_found"):
                await agent.client.read_resource("herdbook://trace/none")
            assert {"start_of_run", "end_of_run"} == {each.name for each in (await agent.client.list_prompts()).prompts}
            start = await agent.client.get_prompt("start_of_run", {"task": "ship it {now}"})
            content = start.messages[0].content
            assert isinstance(content, TextContent)
            assert "Your task: ship it {now}" in content.text
            with pytest.raises(MCPError, match="needs task"):
                await agent.client.get_prompt("start_of_run", {})

    run(work)


@pytest.mark.parametrize("argv", [["--prefix", "a b"], ["--tokens", "3"]])
def test_a_flag_that_makes_no_sense_is_refused(argv, process) -> None:
    """The agent's client would report only that its server ended."""
    told = process("mcp", *argv)
    assert told.code in (1, 2)
    assert "herdbook: " in told.err


@pytest.mark.slow
def test_an_agent_can_ask_what_was_learned_under_the_names_it_knows(tmp_path) -> None:
    """Whoever moves here from a similar tool would find the loop open: no training set, no ranker, no calibration."""

    async def work() -> None:
        async with over_stdio(tmp_path, "--prefix", "amfs_", "--entity", "acme/ci") as agent:
            await agent.call("amfs_brief", task="make it pass")
            token = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
            await agent.call("amfs_record_action", tool="bash", args={"command": f"push --token {token}"}, result="ok")
            await agent.call("amfs_commit_outcome", type="success", task_input="make it pass")
            sent = await agent.call("amfs_export_training_data", limit="5")
            assert (False, 1, 0) == (sent.failed, len(sent.data["rows"]), sent.data["rows_left_out"]), sent.text
            assert token not in sent.text + str(sent.data)
            assert sent.text.count("[REDACTED") > 0
            learned = await agent.call("amfs_retrain")
            assert (False, None) == (learned.failed, learned.data["ranker"])
            fitted = await agent.call("amfs_calibrate")
            assert (False, False) == (fitted.failed, fitted.data["promoted"])
            assert (await agent.call("amfs_calibrate", promote=True)).failed, "an agent puts no numbers into force"

    run(work)
