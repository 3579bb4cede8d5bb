"""The protocol's side: tools, resources and prompts over whatever answers the verbs.

Every call of a tool ends as an answer the model can act on. The SDK speaks the protocol; it is imported only when this is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from herdbook.base.errors import HerdbookError, NotFound
from herdbook.base.text import name as one_line
from herdbook.base.version import VERSION
from herdbook.record.trust import DEAD_END_CONFIDENCE
from herdbook.surfaces.mcp import wording
from herdbook.surfaces.mcp.forms import understood
from herdbook.surfaces.mcp.prompts import INSTRUCTIONS, PROMPTS, prompt
from herdbook.surfaces.mcp.refusals import refused, safe
from herdbook.surfaces.mcp.runs import Asker, Runs
from herdbook.surfaces.mcp.tools import Offered, offered

Context = ServerRequestContext[Any, Any]
Answer = dict[str, Any]
Open = Callable[[Context], Asker]
Connected = Callable[[Context], str | None]  # the name of its connection's run, where it has a connection
ENTITY: Final = "herdbook://entity/"
TRACE: Final = "herdbook://trace/"
LISTED_MAX: Final = 100
KEPT_IN_URI: Final = "/-_.~@+"


@dataclass(frozen=True, slots=True)
class Options:
    """How this server was started."""

    prefix: str = ""  # before each tool's name
    entity: str | None = None  # where a call names none
    agent: str | None = None  # who is asking; else the client by its own name
    tokens_max: int = wording.TOKENS_DEFAULT


@dataclass
class Tools:
    """The tools, and the runs they belong to."""

    options: Options
    open: Open
    connected: Connected
    runs: Runs = field(default_factory=Runs)
    offers: dict[str, Offered] = field(init=False)

    def __post_init__(self) -> None:
        self.offers = {self.options.prefix + each.tool.name: each for each in offered(self.options.entity)}

    async def offer(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Those the caller may use, where that is known."""
        may = self.open(context).may
        allowed = [(name, each) for name, each in self.offers.items() if may is None or each.verb.name in may]
        return types.ListToolsResult(tools=[shown(name, each) for name, each in allowed])

    async def call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            answer, notes, verb = await self.answered(context, params.name, params.arguments or {})
        except Exception as problem:  # because a model is owed a sentence it can act on, whatever went wrong
            data = refused(problem, tool=safe(params.name))
            text = f"{data['error']['code']}: {data['error']['message']}\nNext: {data['next']}."
            return result(text, data, failed=True)
        return result(
            wording.worded(verb, answer, notes, tokens_max=self.budget(params)), wording.structured(verb, answer, notes)
        )

    async def answered(self, context: Context, name: str, arguments: Answer) -> tuple[Answer, list[str], str]:
        offer = self.offers.get(name)
        if offer is None:
            near = difflib.get_close_matches(name, self.offers, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"the tools are {', '.join(self.offers)}"
            raise NotFound(f"there is no tool {safe(name)[:80]!r}: {hint}")
        fields, notes = understood(offer, arguments)
        if "entity" in offer.schema["properties"] and self.options.entity and "default" in offer.properties["entity"]:
            fields.setdefault("entity", self.options.entity)
        verb = offer.verb.name
        if verb == "write" and offer.tool.fixed:
            fields.setdefault("confidence", DEAD_END_CONFIDENCE)
        asker = self.open(context)
        connection = self.connected(context)
        if offer.tracked:
            fields = await self.runs.joined(asker, verb, fields, connection=connection, agent=self.agent(context))
        answer = await asker.call(verb, fields)
        if offer.tracked and connection is None and "session" not in arguments:
            notes.append(
                f"no run was named, so this began one: send session={fields['session']!r} with the calls that belong to it"
            )
            answer = {**answer, "session": fields["session"]}
        return answer, notes, verb

    def agent(self, context: Context) -> str:
        """Who is asking: as the person said, else as the client calls itself."""
        if self.options.agent:
            return self.options.agent
        client = context.session.client_params
        try:
            return one_line(client.client_info.name if client else "mcp", what="client's name")
        except HerdbookError:
            return "mcp"

    def budget(self, params: types.CallToolRequestParams) -> int:
        """An answer's words: a briefing keeps to its own budget, an entry that was asked for is shown whole."""
        asked = (params.arguments or {}).get("tokens")
        if params.name == f"{self.options.prefix}brief" and isinstance(asked, int | str) and str(asked).isdigit():
            return max(int(asked), 64) + 64
        return self.options.tokens_max * (40 if params.name == f"{self.options.prefix}read" else 1)


def shown(name: str, offer: Offered) -> types.Tool:
    tool = offer.tool
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=not offer.verb.tells,
        destructive_hint=tool.destructive,
        idempotent_hint=not offer.verb.tells,
        open_world_hint=False,
    )
    return types.Tool(name=name, title=tool.title, description=tool.text, input_schema=offer.schema, annotations=hints)


def result(text: str, data: Answer, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=data, is_error=failed)


@dataclass(frozen=True, slots=True)
class Pages:
    """Resources and prompts: what a person looks at, beside what the model calls."""

    tools: Tools

    async def resources(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The entity paths there are, a page at a time."""
        call = self.tools.open(context).call
        after = {"after": params.cursor} if params and params.cursor else {}
        answer = await guarded(call("list", {"limit": LISTED_MAX, **after}))
        found = [
            types.Resource(
                uri=ENTITY + quote(path["entity"], safe=KEPT_IN_URI),
                name=path["entity"],
                title=f"What is known about {path['entity']}",
                mime_type="text/markdown",
            )
            for path in answer["paths"]
        ]
        return types.ListResourcesResult(resources=found, next_cursor=answer["next"])

    async def templates(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        about = {
            f"{ENTITY}{{+entity}}": ("entity", "What is known about an entity path", "text/markdown"),
            f"{TRACE}{{ref}}": ("trace", "A run, by its outcome's ref or its session", "application/json"),
        }
        found = [types.ResourceTemplate(uri_template=uri, name=n, title=t, mime_type=m) for uri, (n, t, m) in about.items()]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        asker = self.tools.open(context)
        uri = str(params.uri)
        if uri.startswith(ENTITY):
            runs, connection, agent = self.tools.runs, self.tools.connected(context), self.tools.agent(context)
            fields: Answer = {"entity": unquote(uri.removeprefix(ENTITY))}
            if connection is not None:  # what is shown here is read, too
                fields = await guarded(runs.joined(asker, "brief", fields, connection=connection, agent=agent))
            answer = await guarded(asker.call("brief", fields))
            return page(uri, "\n".join(wording.brief(answer)), "text/markdown")
        if uri.startswith(TRACE):
            answer = await guarded(asker.call("trace", {"ref": unquote(uri.removeprefix(TRACE))}))
            return page(uri, wording.pretty(answer), "application/json")
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {safe(uri)[:200]!r}: they begin with {ENTITY} or {TRACE}")

    async def prompts(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        found = [
            types.Prompt(
                name=each.name,
                title=each.title,
                description=each.about,
                arguments=[types.PromptArgument(name=n, description=d, required=r) for n, d, r in each.arguments],
            )
            for each in PROMPTS.values()
        ]
        return types.ListPromptsResult(prompts=found)

    async def prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in PROMPTS:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {safe(params.name)[:80]!r}: there are {', '.join(PROMPTS)}")
        given = params.arguments or {}
        missing = [name for name, _, required in PROMPTS[params.name].arguments if required and not given.get(name)]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"{params.name} needs {', '.join(missing)}: send it")
        given = {"entity": self.tools.options.entity or "", **given}
        text = prompt(params.name, given, prefix=self.tools.options.prefix)
        return types.GetPromptResult(
            description=PROMPTS[params.name].about,
            messages=[types.PromptMessage(role="user", content=types.TextContent(text=text))],
        )


async def guarded(work: Awaitable[Answer]) -> Answer:
    """Where the protocol has no answer that says no, the refusal is its error."""
    try:
        return await work
    except Exception as problem:  # because the SDK would show whatever it was
        data = refused(problem, tool="a resource")
        raise MCPError(types.INVALID_PARAMS, f"{data['error']['message']} ({data['error']['code']})") from problem


def page(uri: str, text: str, mime_type: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=mime_type)])


def build(options: Options, *, open_call: Open, connected: Connected) -> tuple[Server[Any], Runs]:
    """A server of the SDK over these verbs, and the runs that begin through it."""
    tools = Tools(options, open_call, connected)
    pages = Pages(tools)
    server = Server(
        "herdbook",
        version=VERSION,
        title="herdbook",
        instructions=INSTRUCTIONS.format(prefix=options.prefix),
        on_list_tools=tools.offer,
        on_call_tool=tools.call,
        on_list_resources=pages.resources,
        on_list_resource_templates=pages.templates,
        on_read_resource=pages.read,
        on_list_prompts=pages.prompts,
        on_get_prompt=pages.prompt,
    )
    return server, tools.runs
