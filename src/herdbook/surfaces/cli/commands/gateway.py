"""The credential gateway: serve it, and say which credentials it keeps, what they may be used for, and by which boxes.

A secret comes from a file or from standard input, never from the command line, and is never shown again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from herdbook.base import files
from herdbook.base.errors import ExtraMissing
from herdbook.surfaces.cli.inputs import standard_input
from herdbook.surfaces.cli.invocation import Invocation, login_name
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, clipped, line, table

if TYPE_CHECKING:
    from herdbook.gateway.keeping import Gatekeeper

EXAMPLES: Final = """\
example:
  $ herdbook gateway add github --to https://api.github.com --bearer --secret-file token \\
        --allow 'GET /repos/acme/**' --block '* /repos/acme/payroll/**'
  $ herdbook gateway grant github --label ci
  $ herdbook gateway serve

Inside a box labelled ci, without any key:
  GET /v1/gateway/github/repos/acme/web/commits, by the box's own socket or with its pass

rotate puts a new secret in place of the old one, revoke removes it; both hold from the next call on. audit shows every call."""

ACTS: Final = ("serve", "add", "ls", "rules", "grant", "withdraw", "budget", "rotate", "revoke", "rm", "audit")
HOST, PORT = "127.0.0.1", 8766
CONNECTOR_KEY_CHARS_MIN: Final = 32
SECRET_BYTES_MAX: Final = 64 * 1024  # a service account's key has 2,400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Keep credentials out of boxes: a box calls /v1/gateway/CONNECTION/PATH, and the gateway adds the credential if a rule "
        "allows the call. Everything not allowed is refused."
    )
    parser.add_argument("act", metavar="ACT", choices=ACTS, help=", ".join(ACTS))
    parser.add_argument("connection", metavar="CONNECTION", nargs="?", help="the connection's name, such as github")
    parser.usage = "herdbook gateway ACT [CONNECTION] [options]"  # all of them in one line would fill a screen
    adding = parser.add_argument_group("for add")
    adding.add_argument("--to", metavar="URL", help="the service: https://host, with a path if all calls are below it")
    kind = adding.add_mutually_exclusive_group()
    kind.add_argument("--bearer", action="store_true", help="send the secret as Authorization: Bearer (the default)")
    kind.add_argument("--header", metavar="NAME", help="send it in this header")
    kind.add_argument("--basic", metavar="USER", help="send it as this user's password")
    kind.add_argument("--query", metavar="NAME", help="send it as this parameter of the address")
    kind.add_argument("--path", action="store_true", help="the secret is a path, as in a chat's webhook")
    kind.add_argument("--github-app", metavar="APP", help="mint installation tokens; the secret is the app's private key")
    kind.add_argument("--gcp", metavar="ACCOUNT", help="mint tokens that only read, of this service account")
    kind.add_argument("--box-pass", action="store_true", help="the service is the record: send it a pass of the calling box")
    adding.add_argument("--installation", metavar="N", type=whole_number, help="with --github-app: where it is installed")
    adding.add_argument(
        "--repository", metavar="NAME", action="append", help="with --github-app: one it is for, without its owner"
    )
    adding.add_argument("--permission", metavar="NAME:LEVEL", action="append", help="with --github-app: such as contents:read")
    adding.add_argument("--scope", metavar="URL", action="append", help="with --gcp: a scope that only reads")
    adding.add_argument(
        "--gcp-key",
        action="store_true",
        help="with --gcp: the secret is the key of the account that asks",
    )
    adding.add_argument("--before", metavar="TEXT", help="with --header: what stands before the secret, such as 'token '")
    adding.add_argument("--private", action="store_true", help="the service is on this machine or a private network")
    parser.add_argument(
        "--secret-file", type=Path, metavar="PATH", help="for add and rotate: where the secret is (standard input)"
    )
    rules = parser.add_argument_group("for add and rules")
    rules.add_argument(
        "--allow", metavar="RULE", action="append", help="'METHOD[,METHOD] /pattern'; * is within one part, ** any parts"
    )
    rules.add_argument("--block", metavar="RULE", action="append", help="never, whatever is allowed")
    rules.add_argument("--forget", metavar="RULE", action="append", help="for rules: take back a rule, as ls shows it")
    granting = parser.add_argument_group("for grant, withdraw and audit")
    granting.add_argument("--box", metavar="BOX", help="one box")
    granting.add_argument("--label", metavar="LABEL", help="all boxes that carry this label")
    granting.add_argument("--limit", metavar="N", type=whole_number, default=100, help="for audit: the last N lines (100)")
    budget = parser.add_argument_group(
        "for budget: what each box may over this connection",
        "each process that serves the gateway counts by itself, from its start",
    )
    budget.add_argument("--calls", metavar="N", type=whole_number, help="calls (as many as the box may in all)")
    budget.add_argument("--bytes-up", metavar="N", type=whole_number, help="bytes it sends")
    budget.add_argument("--bytes-down", metavar="N", type=whole_number, help="bytes it receives")
    where = parser.add_argument_group("for serve")
    where.add_argument("--host", default=HOST, help=f"the address to listen on (default {HOST})")
    where.add_argument("--port", type=int, default=PORT, help=f"the port to listen on (default {PORT}; 0 takes a free one)")
    where.add_argument("--unix", metavar="PATH", help="listen on a unix socket instead")
    where.add_argument(
        "--connector-key-file", type=Path, metavar="PATH", help="the key that a provider's own gateway shows for its boxes"
    )
    where.add_argument("--log-level", choices=("error", "warning", "info", "debug"), default="warning", help="what to say aloud")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if (args.act in ("serve", "audit", "ls")) < (args.connection is None):
        raise Usage(f"{args.act} needs the name of a connection (see herdbook gateway --help)")
    try:
        from herdbook.gateway.keeping import Gatekeeper
    except ModuleNotFoundError as problem:
        raise ExtraMissing.of("gateway", what=f"the package {problem.name}") from problem
    if args.act == "serve":
        return served(invocation)
    return ACTIONS[args.act](invocation, Gatekeeper.of(invocation.settings, by=login_name()))


def served(invocation: Invocation) -> int:
    """Until a signal. Boxes are asked for in the record that this command was told to use."""
    import logging

    from herdbook.base.http_edge import Edge
    from herdbook.base.http_serve import bind_tcp, bind_unix, serve, url_of
    from herdbook.gateway.opening import LIMITS, open_app

    args = invocation.args
    logging.basicConfig(stream=sys.stderr, level=args.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    connector, door = connector_key(args.connector_key_file), invocation.opened()
    sock = bind_unix(args.unix) if args.unix is not None else bind_tcp(args.host, args.port)
    app = open_app(invocation.settings, door.call)
    state = app.open_state(key=invocation.settings.key, connector=connector)

    def ready() -> None:
        url = url_of(sock)
        invocation.show({"url": url}, [f"the gateway is on {url}"])
        sys.stdout.flush()

    serve(Edge(app, limits=LIMITS), sock, state=state, on_ready=ready, on_stop=app.close)
    return 0


def connector_key(path: Path | None) -> str | None:
    if path is None:
        return None
    key = files.read_text(path, what="the connector's key", bytes_max=SECRET_BYTES_MAX).strip()
    if len(key) < CONNECTOR_KEY_CHARS_MIN or not key.isascii() or not key.isprintable() or " " in key:
        raise Usage(
            f"a connector's key is {CONNECTOR_KEY_CHARS_MIN} or more printable characters: head -c 32 /dev/urandom | base64"
        )
    return key


def added(invocation: Invocation, keeper: Gatekeeper) -> int:
    args = invocation.args
    if args.to is None:
        raise Usage("say where the connection leads: --to https://host")
    connection = keeper.add(
        args.connection, base=args.to, credential=kind_of(args), secret=secret_of(args),
        allow=args.allow or [], block=args.block or [], private=args.private,
    )  # fmt: skip
    return shown(invocation, [connection])


def kind_of(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of the credential, as its file has them."""
    if args.header is not None:
        return {"type": "header", "name": args.header.lower(), "before": args.before or ""}
    if args.before is not None:
        raise Usage("--before goes with --header")
    if args.basic is not None:
        return {"type": "basic", "user": args.basic}
    if args.query is not None:
        return {"type": "query", "name": args.query}
    if args.github_app is not None:
        permissions = dict(each.partition(":")[::2] for each in args.permission or [])
        said = {"installation": args.installation or 0, "repositories": args.repository or [], "permissions": permissions}
        return {"type": "github-app", "app": args.github_app, **said}
    if args.gcp is not None:
        scopes = {"scopes": args.scope} if args.scope else {}
        return {"type": "gcp", "account": args.gcp, "source": "key" if args.gcp_key else "metadata", **scopes}
    if args.box_pass:
        return {"type": "box-pass"}
    return {"type": "path" if args.path else "bearer"}


def secret_of(args: argparse.Namespace) -> str:
    """From a file, or from standard input. At a terminal it is not shown while it is typed."""
    if args.box_pass or (args.gcp is not None and not args.gcp_key):
        return ""
    if args.secret_file is not None:
        return files.read_text(args.secret_file, what="the secret", bytes_max=SECRET_BYTES_MAX).strip("\r\n")
    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass("secret: ").strip("\r\n")
    return standard_input(what="secret", bytes_max=SECRET_BYTES_MAX).strip("\r\n")


def listed(invocation: Invocation, keeper: Gatekeeper) -> int:
    wanted = invocation.args.connection
    return shown(invocation, [keeper.shown(wanted)] if wanted else keeper.all())


def shown(invocation: Invocation, connections: list[Answer]) -> int:
    return invocation.show({"connections": connections}, [*map(line, connection_lines(connections))])


def connection_lines(connections: list[Answer]) -> Iterator[str]:
    if not connections:
        yield "There are no connections."
    for each in connections:
        if "problem" in each:
            yield f"{each['connection']}  {each['problem']}"
            continue
        state = "revoked" if each["revoked"] else f"secret {each['secret_version']}"
        reach = ", private networks too" if each["private"] else ""
        yield f"{each['connection']}  {each['service']}  {each['credential']['type']}, {state}{reach}"
        yield from (f"  {rule}" for rule in each["rules"] or ["no rule: nothing is allowed"])
        yield from [f"  for {grant}" for grant in each["grants"]] or ["  for no box: grant it"]
        parts = [f"{most} {part.replace('_', ' ')}" for part, most in each["budget"].items() if most is not None]
        yield from [f"  each box at most {', '.join(parts)}"] if parts else []


def ruled(invocation: Invocation, keeper: Gatekeeper) -> int:
    args = invocation.args
    change = {"allow": args.allow or [], "block": args.block or [], "forget": args.forget or []}
    if not any(change.values()):
        raise Usage("say what changes: --allow, --block or --forget a rule")
    return shown(invocation, [keeper.rules(args.connection, **change)])


def granted(invocation: Invocation, keeper: Gatekeeper) -> int:
    args = invocation.args
    if (args.box is None) == (args.label is None):
        raise Usage("say which boxes: --box BOX or --label LABEL")
    change = keeper.grant if args.act == "grant" else keeper.withdraw
    return shown(invocation, [change(args.connection, box=args.box, label=args.label)])


def budgeted(invocation: Invocation, keeper: Gatekeeper) -> int:
    args = invocation.args
    told = keeper.budget(args.connection, calls=args.calls, bytes_up=args.bytes_up, bytes_down=args.bytes_down)
    return shown(invocation, [told])


def rotated(invocation: Invocation, keeper: Gatekeeper) -> int:
    return shown(invocation, [keeper.rotate(invocation.args.connection, secret_of(invocation.args))])


def revoked(invocation: Invocation, keeper: Gatekeeper) -> int:
    return shown(invocation, [keeper.revoke(invocation.args.connection)])


def removed(invocation: Invocation, keeper: Gatekeeper) -> int:
    name = invocation.args.connection
    keeper.remove(name)
    return invocation.show({"removed": name}, [f"{line(name)} is gone"])


def audited(invocation: Invocation, keeper: Gatekeeper) -> int:
    args = invocation.args
    wanted = {name: value for name, value in (("box", args.box), ("connection", args.connection)) if value is not None}
    found = [each for each in keeper.audit() if all(each.get(name) == value for name, value in wanted.items())]
    found = found[-args.limit :] if args.limit > 0 else []
    return invocation.show({"calls": found}, table(map(audit_row, found), indent="") or ["No calls."])


def audit_row(each: Answer) -> list[str]:
    said = [each.get(name, "") for name in ("at", "event", "box", "connection", "method")]
    status = each.get("status") or each.get("code") or ""
    ended = f"{each['bytes_in']} in, {each['bytes_out']} out" if "bytes_out" in each else ""
    return [*map(line, said), clipped(each.get("path", ""), 60), line(status), line(ended), line(each.get("rule", ""))]


ACTIONS: Final[dict[str, Callable[[Invocation, Gatekeeper], int]]] = {
    "add": added, "ls": listed, "rules": ruled, "grant": granted, "withdraw": granted, "budget": budgeted,
    "rotate": rotated, "revoke": revoked,
    "rm": removed, "audit": audited,
}  # fmt: skip
