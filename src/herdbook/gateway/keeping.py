"""Looking after connections: add, list, rules, grants, rotate, revoke. Write-only: no call here gives a secret back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from herdbook.base import clock, text
from herdbook.base.errors import HerdbookError, InvalidRequest, NotFound, TooLarge
from herdbook.base.settings import Settings
from herdbook.gateway import audit, connections, credentials, policy
from herdbook.gateway.budget import Budget
from herdbook.gateway.connections import Change, Connection, Grant
from herdbook.gateway.egress import Reach
from herdbook.gateway.keeper import FileKeeper
from herdbook.gateway.opening import audit_folder, open_vault
from herdbook.gateway.vault import Kept, Vault

Changer = Callable[[Connection], Connection]


class Gatekeeper:
    """What an operator does to the vault; every change is kept with who made it."""

    def __init__(self, vault: Vault, audit_folder: Path, *, by: str, source: clock.Clock | None = None) -> None:
        self.vault, self.audit_folder, self.by, self.clock = vault, audit_folder, by, source or clock.SystemClock()

    @classmethod
    def of(cls, settings: Settings, *, by: str) -> Gatekeeper:
        return cls(open_vault(settings), audit_folder(settings), by=by)

    def add(
        self,
        name: str,
        *,
        base: str,
        credential: dict[str, Any],
        secret: str,
        allow: Iterable[str] = (),
        block: Iterable[str] = (),
        private: bool = False,
    ) -> dict[str, Any]:
        """A new connection. It can be used once it is granted."""
        if isinstance(self.vault.keeper, FileKeeper) and not self.vault.names():
            self.vault.keeper.create()
        settings = parsed(credential)
        connections.target(base, reach=Reach.PRIVATE if private else Reach.PUBLIC)
        connection = Connection(
            name=connections.connection_name(name),
            base=base,
            credential=settings,
            rules=checked_rules([*rules(allow), *rules(block, blocks=True)]),
            reach="private" if private else "public",
            history=(self.change("added"),),
        )
        self.vault.add(connection, credentials.check_secret(settings, secret))
        return shown(connection)

    def all(self) -> list[dict[str, Any]]:
        """Every connection; one that cannot be opened is shown with what is wrong."""
        return [self.shown_anyway(name) for name in self.vault.names()]

    def shown_anyway(self, name: str) -> dict[str, Any]:
        try:
            return self.shown(name)
        except HerdbookError as problem:
            return {"connection": name, "problem": problem.message}

    def shown(self, name: str) -> dict[str, Any]:
        return shown(self.vault.get(name).connection)

    def rules(
        self, name: str, *, allow: Sequence[str] = (), block: Sequence[str] = (), forget: Sequence[str] = ()
    ) -> dict[str, Any]:
        gone = {str(each) for each in [*rules(word.removeprefix("block ") for word in forget)]}

        def changed(now: Connection) -> Connection:
            kept = [each for each in now.rules if str(each).removeprefix("block ") not in gone]
            if len(kept) > len(now.rules) - len(gone):
                raise NotFound(f"there is no such rule: look with `herdbook gateway ls {name}`")
            more = [*rules(allow), *rules(block, blocks=True)]
            return msgspec.structs.replace(now, rules=checked_rules([*kept, *more]))

        return self.changed(name, changed, "rules " + ", ".join([*allow, *(f"block {each}" for each in block)] or ["fewer"]))

    def grant(self, name: str, *, box: str | None = None, label: str | None = None) -> dict[str, Any]:
        wanted = grant(box, label)

        def changed(now: Connection) -> Connection:
            if len(now.grants) >= connections.GRANTS_MAX:
                raise TooLarge(f"a connection has at most {connections.GRANTS_MAX} grants: grant a label instead of boxes")
            return msgspec.structs.replace(now, grants=tuple(dict.fromkeys([*now.grants, wanted])))

        return self.changed(name, changed, f"granted to {wanted}")

    def withdraw(self, name: str, *, box: str | None = None, label: str | None = None) -> dict[str, Any]:
        gone = grant(box, label)

        def changed(now: Connection) -> Connection:
            if gone not in now.grants:
                raise NotFound(f"{name} was not granted to {gone}: look with `herdbook gateway ls {name}`")
            return msgspec.structs.replace(now, grants=tuple(each for each in now.grants if each != gone))

        return self.changed(name, changed, f"withdrawn from {gone}")

    def budget(self, name: str, *, calls: int | None, bytes_up: int | None, bytes_down: int | None) -> dict[str, Any]:
        """What each box may ask of this connection in its life; None is as much as the box may in all."""
        try:
            wanted = msgspec.convert({"calls": calls, "bytes_up": bytes_up, "bytes_down": bytes_down}, Budget)
        except msgspec.ValidationError as problem:
            raise InvalidRequest(f"this is no budget: {problem}") from problem
        said = ", ".join(f"{part} {most}" for part, most in msgspec.to_builtins(wanted).items() if most) or "none"
        return self.changed(name, lambda now: msgspec.structs.replace(now, budget=wanted), f"budget of a box: {said}")

    def rotate(self, name: str, secret: str) -> dict[str, Any]:
        """A new secret in place of the old one, of which nothing is kept. It also ends a revocation."""

        def changed(kept: Kept) -> Kept:
            now = kept.connection
            fresh = credentials.check_secret(now.credential, secret)
            version = now.secret_version + 1
            return Kept(
                self.noted(msgspec.structs.replace(now, secret_version=version, revoked=False), f"secret {version}"), fresh
            )

        return shown(self.vault.change(name, changed))

    def revoke(self, name: str) -> dict[str, Any]:
        """The secret is gone, and no call is made any more; rules and grants stay for a rotation."""

        def changed(kept: Kept) -> Kept:
            return Kept(self.noted(msgspec.structs.replace(kept.connection, revoked=True), "revoked"), "")

        return shown(self.vault.change(name, changed))

    def remove(self, name: str) -> None:
        self.vault.remove(name)

    def audit(self) -> list[dict[str, Any]]:
        return audit.lines(self.audit_folder)

    def changed(self, name: str, change: Changer, what: str) -> dict[str, Any]:
        return shown(self.vault.change(name, lambda kept: replace(kept, connection=self.noted(change(kept.connection), what))))

    def noted(self, connection: Connection, what: str) -> Connection:
        return msgspec.structs.replace(connection, history=(*connection.history, self.change(what))[-connections.HISTORY_MAX :])

    def change(self, what: str) -> Change:
        return Change(clock.iso(self.clock.now()), self.by, what)


def parsed(credential: dict[str, Any]) -> credentials.Settings:
    try:
        found: credentials.Settings = msgspec.convert(credential, credentials.Settings)
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"this is no kind of credential: {problem}") from problem
    return found


def rules(texts: Iterable[str], *, blocks: bool = False) -> list[policy.Rule]:
    return [policy.rule(each, blocks=blocks) for each in texts]


def checked_rules(found: Iterable[policy.Rule]) -> tuple[policy.Rule, ...]:
    kept = tuple(dict.fromkeys(found))
    if len(kept) > connections.RULES_MAX:
        raise TooLarge(f"a connection has at most {connections.RULES_MAX} rules: write wider ones, or make a second connection")
    return kept


def grant(box: str | None, label: str | None) -> Grant:
    if (box is None) == (label is None):
        raise InvalidRequest("a grant is for one box or for one label")
    return Grant(box=text.identifier(box, what="box id")) if box is not None else Grant(label=text.name(label, what="label"))


def shown(connection: Connection) -> dict[str, Any]:
    """All of it but the secret, which is not even at hand here."""
    return {
        "connection": connection.name,
        "service": connection.base,
        "credential": msgspec.to_builtins(connection.credential),
        "secret_version": connection.secret_version,
        "revoked": connection.revoked,
        "private": connection.reach == "private",
        "rules": [str(each) for each in connection.rules],
        "grants": [str(each) for each in connection.grants],
        "budget": msgspec.to_builtins(connection.budget),
        "history": [msgspec.to_builtins(each) for each in connection.history],
    }
