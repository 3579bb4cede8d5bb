"""The record as a few dicts, and a machine that holds a store to it: whatever people and boxes do, in any order.

The model knows nothing of SQL, triggers or journals. Where the two differ, one of them does not do what the design says.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from herdbook.record import trust
from herdbook.service.door import Service
from herdbook.testing.record_book import Book, Desk, box, person

KEYS, VALUES, WHYS = ("a", "b"), (0, 1), ("seen", "heard")
USED = (("a",), ("b",), ("a", "b"), (), None)
# Who runs: (session, identity, box). Two boxes of one identity, and two people without one.
RUNS = (("in-a", "fleet", "box-a"), ("in-b", "fleet", "box-b"), ("of-ann", "ann", None), ("of-bob", "bob", None))


@dataclass(slots=True)
class Move:
    """One outcome's, or one failed attempt's, share in a claim."""

    how: str
    factor: float
    credit: float
    result: bool


@dataclass(slots=True)
class Claim:
    """What a value of a key has come to."""

    initial: float
    moves: list[Move] = field(default_factory=list)
    observed: int = 0
    corroborated: int = 0
    affirmed: int = 0

    @property
    def confidence(self) -> float:
        return trust.fold(self.initial, [move.factor for move in self.moves])

    @property
    def held(self) -> float:
        return sum(move.credit for move in self.moves if move.result)

    @property
    def failed(self) -> float:
        return sum(move.credit for move in self.moves if not move.result)

    @property
    def failed_since(self) -> float:
        since = 0.0
        for move in self.moves:
            since = since * (1 - move.credit) if move.result else since + move.credit
        return since

    @property
    def standing(self) -> str:
        return trust.standing(self)

    @property
    def stands(self) -> bool:
        return self.observed > 0 or self.corroborated > 0


@dataclass(slots=True)
class Version:
    number: int
    value: int
    why: str
    run: int  # which of RUNS wrote it

    @property
    def by_operator(self) -> bool:
        return RUNS[self.run][2] is None


@dataclass(slots=True)
class Entry:
    versions: list[Version] = field(default_factory=list)
    claims: dict[int, Claim] = field(default_factory=dict)
    stood: int = 0  # the last version that stood

    @property
    def current(self) -> Version:
        return self.versions[-1]

    @property
    def standing(self) -> str:
        """Of the current version: an agent's new words about an old claim have to earn what the claim did."""
        return trust.earned(self.claims[self.current.value].standing, self.current.number, self.stood or None)

    @property
    def beside(self) -> int | None:
        """The version that is served beside the current one: the last that stood, or what stood before it."""
        if self.stood in (0, self.current.number) or trust.acts(self.standing):
            return None
        if trust.acts(self.claims[self.versions[self.stood - 1].value].standing):
            return self.stood
        before = [v.value for v in self.versions[: self.stood - 1] if trust.acts(self.claims[v.value].standing)]
        return next(v.number for v in self.versions if v.value == before[-1]) if before else None

    def settle(self, *, gave: bool, number: int) -> None:
        """What stood last, after a version was given standing, or its claim lost some."""
        if gave:
            value = self.versions[number - 1].value
            same = [v.number for v in self.versions if v.value == value and (v.number == number or v.by_operator)]
            self.stood = max(self.stood, *same)
        else:
            kept = [v for v in self.versions if v.number <= self.stood or v.by_operator]
            self.stood = max((v.number for v in kept if self.claims[v.value].stands), default=0)


@dataclass(slots=True)
class Outcome:
    ref: str
    run: int
    effective: str
    moved: list[tuple[str, Version, Move, float]]  # key, version, move, the credit it is due
    wrote: list[tuple[str, int]]  # what the session had written by then: key, version
    served: set[tuple[str, int]]  # and what it had been served: key, value
    said: list[str] = field(default_factory=list)  # results of attestations
    in_base_rate: bool = False
    try_in_base_rate: bool = False


@dataclass(slots=True)
class Run:
    """What the model knows of a session."""

    reads: list[tuple[str, Version]] = field(default_factory=list)
    wrote: list[tuple[str, int]] = field(default_factory=list)
    failed: list[tuple[str, Version]] = field(default_factory=list)  # what attempts used that no outcome has charged


class RecordMachine(RuleBasedStateMachine):
    """Plays on a path of its own in a record that is already open, in two processes at once."""

    book: ClassVar[Book]
    services: ClassVar[list[Service]]
    examples = 0

    def __init__(self) -> None:
        super().__init__()
        RecordMachine.examples += 1
        self.entity, self.turn = f"model/{RecordMachine.examples}", 0
        self.entries: dict[str, Entry] = {}
        self.runs = [Run() for _ in RUNS]
        self.outcomes: list[Outcome] = []
        self.counted: set[tuple[str, str, int]] = set()
        self.desks = [[self.desk(service, n) for n in range(len(RUNS))] for service in self.services]
        self.operators = [person(service, "operator") for service in self.services]
        for n in range(len(RUNS)):
            self.at(n).begin(self.session(n))

    @initialize()
    def somebody_was_here(self) -> None:
        self.write(0, "a", 0, "seen", None)
        self.attested_run(0, "success", None)
        self.write(2, "b", 0, "seen", None)

    def desk(self, service: Service, n: int) -> Desk:
        _, identity, name = RUNS[n]
        return person(service, identity) if name is None else box(service, name, identity=identity)

    def at(self, n: int) -> Desk:
        """Run n's desk, in this process or in the other."""
        self.turn += 1
        return self.desks[self.turn % 2][n]

    @property
    def operator(self) -> Desk:
        self.turn += 1
        return self.operators[self.turn % 2]

    def session(self, n: int) -> str:
        return f"{RUNS[n][0]}-{self.entity}"

    @property
    def day(self) -> int:
        return self.book.clock.at // 86_400_000_000

    @rule(
        n=st.integers(0, 3), key=st.sampled_from(KEYS), value=st.sampled_from(VALUES), why=st.sampled_from(WHYS),
        stated=st.sampled_from([None, 0.5, 0.97]),
    )  # fmt: skip
    def write(self, n: int, key: str, value: int, why: str, stated: float | None) -> None:
        entry = self.entries.setdefault(key, Entry())
        versions = entry.versions
        known = value in entry.claims
        if versions and (versions[-1].value, versions[-1].why) == (value, why):
            expected = "affirmed"
            entry.claims[value].affirmed += 1
        else:
            expected = "new" if not known else "restated" if versions[-1].value == value else "returned"
            versions.append(Version(len(versions) + 1, value, why, n))
            entry.claims.setdefault(value, Claim(0.5 if stated is None else stated))
            self.runs[n].wrote.append((key, len(versions)))
            if trust.acts(entry.claims[value].standing) and entry.current.by_operator:
                entry.stood = len(versions)
        more = {} if stated is None else {"confidence": stated}
        answer = self.at(n).write(key, value, why=why, entity=self.entity, session=self.session(n), **more)
        claim = entry.claims[value]
        assert (expected, len(versions), entry.standing) == (answer["claim"], answer["version"], answer["standing"])
        assert near(claim.confidence) == answer["confidence"]
        self.agree()

    @precondition(lambda self: self.entries)
    @rule(n=st.integers(0, 3), data=st.data())
    def read(self, n: int, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.entries)))
        entry = self.entries[key]
        self.at(n).read(key, entity=self.entity, session=self.session(n))
        shown = [entry.current.number] + ([entry.beside] if entry.beside else [])
        self.runs[n].reads += [(key, entry.versions[number - 1]) for number in shown]

    @precondition(lambda self: self.entries)
    @rule(n=st.integers(0, 3), data=st.data())
    def attempt(self, n: int, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.entries)))
        self.at(n).do("attempt", session=self.session(n), result="failure", used=[{"entity": self.entity, "key": key}])
        self.runs[n].failed.append((key, self.meant(n, key)))

    def meant(self, n: int, key: str) -> Version:
        """The version that `used` means by a key: the last that was served, or else the current one."""
        served = [version for name, version in self.runs[n].reads if name == key]
        return served[-1] if served else self.entries[key].current

    @precondition(lambda self: self.entries)
    @rule(n=st.integers(0, 3), kind=st.sampled_from(sorted(trust.MULTIPLIERS)), used=st.sampled_from(USED))
    def outcome(self, n: int, kind: str, used: tuple[str, ...] | None) -> None:
        keys = None if used is None else [key for key in used if key in self.entries]
        causes = self.causes(n, keys)
        ref = f"o{len(self.outcomes)}-{self.entity}"
        named = {} if keys is None else {"used": [{"entity": self.entity, "key": key} for key in keys]}
        answer = self.at(n).outcome(self.session(n), kind, ref=ref, **named)
        identity, success = RUNS[n][1], kind == "success"
        already = {key for key, _, _ in causes if (key, identity, self.day) in self.counted}
        moved = []
        for key, version, how in causes:
            twice = (
                how == "attempt" and not success and any((k, v.value, "used") == (key, version.value, h) for k, v, h in causes)
            )
            due = 0.2 if how == "served" else 1.0
            credit = 0.0 if twice or key in already else due
            self.counted.add((key, identity, self.day))
            claim = self.entries[key].claims[version.value]
            before = claim.confidence
            factor = 1.0 if how == "attempt" else trust.MULTIPLIERS[kind]
            move = Move(how, factor, credit, success and how != "attempt")
            claim.moves.append(move)
            moved.append((key, version, move, due))
            told = next(m for m in answer["moved"] if (m["key"], m["version"], m["how"]) == (key, version.number, how))
            assert (near(before), near(claim.confidence)) == (told["before"], told["after"])
        assert len(moved) == len(answer["moved"])
        in_base = any(move.credit and move.how != "attempt" for _, _, move, _ in moved)
        tried = any(move.credit and move.how == "attempt" for _, _, move, _ in moved)
        served = {(key, version.value) for key, version in self.runs[n].reads}
        self.outcomes.append(Outcome(ref, n, kind, moved, list(self.runs[n].wrote), served, [], in_base, tried))
        self.agree()

    def causes(self, n: int, keys: list[str] | None) -> list[tuple[str, Version, str]]:
        """What an outcome rests on, one version a claim: (key, version, how)."""
        run = self.runs[n]
        picked = run.reads if keys is None else [(key, self.meant(n, key)) for key in keys]
        one_a_claim = {(key, version.value): version for key, version in picked}
        failed: dict[tuple[str, int], Version] = {}
        for key, version in run.failed:
            failed[key, version.value] = max(version, failed.get((key, version.value), version), key=lambda v: v.number)
        run.failed = []
        how = "served" if keys is None else "used"
        return [(key, version, "attempt") for (key, _), version in failed.items()] + [
            (key, version, how) for (key, _), version in one_a_claim.items()
        ]

    @precondition(lambda self: self.outcomes)
    @rule(data=st.data(), kind=st.sampled_from(sorted(trust.MULTIPLIERS)))
    def revise(self, data: st.DataObject, kind: str) -> None:
        outcome = data.draw(st.sampled_from(self.outcomes))
        answer = self.operator.do("revise_outcome", ref=outcome.ref, type=kind)
        assert (outcome.effective, kind) == (answer["was"], answer["type"])
        self.turned(outcome, kind)
        self.agree()

    def turned(self, outcome: Outcome, kind: str) -> None:
        """An outcome becomes something else."""
        was, now = outcome.effective == "success", kind == "success"
        outcome.effective = kind
        for _, _, move, _ in outcome.moved:
            if move.how != "attempt":
                move.factor, move.result = trust.MULTIPLIERS[kind], now
        if was != now and "success" in outcome.said:
            self.give(outcome, 1 if now else -1)

    @precondition(lambda self: self.entries)
    @rule(n=st.integers(0, 3), kind=st.sampled_from(["success", "failure"]), used=st.sampled_from(USED))
    def attested_run(self, n: int, kind: str, used: tuple[str, ...] | None) -> None:
        """What happens all day, so that standing comes and goes within few steps."""
        self.outcome(n, kind, used)
        self.vouch(self.outcomes[-1], kind)

    @precondition(lambda self: self.outcomes)
    @rule(data=st.data(), result=st.sampled_from(["success", "failure"]))
    def attest(self, data: st.DataObject, result: str) -> None:
        self.vouch(data.draw(st.sampled_from(self.outcomes)), result)

    def vouch(self, outcome: Outcome, result: str) -> None:
        answer = self.operator.do("attest", ref=outcome.ref, result=result)
        if result not in outcome.said:
            outcome.said.append(result)
            failed = {(key, v.value) for key, v, move, _ in outcome.moved if move.how == "used" and not move.result}
            for key, v, move, due in outcome.moved:
                first = outcome.said == [result]  # later attestations find the credit given
                if first and (move.how != "attempt" or (key, v.value) not in failed):  # one run that fails is one failure
                    move.credit = due
            outcome.in_base_rate = outcome.in_base_rate or any(move.how != "attempt" for _, _, move, _ in outcome.moved)
            outcome.try_in_base_rate |= any(move.how == "attempt" and move.credit > 0.0 for _, _, move, _ in outcome.moved)
            if result == "success":
                if outcome.effective == "success":
                    self.give(outcome, 1)
            elif outcome.effective == "success":
                self.turned(outcome, "failure")
        assert outcome.effective == answer["type"]
        self.agree()

    def give(self, outcome: Outcome, sign: int) -> None:
        """Observed for what the session wrote, corroborated for what it used of others'; or both taken back."""
        wrote = set(outcome.wrote)
        others = {
            (key, v.number)
            for key, v, move, _ in outcome.moved
            if move.how == "used" and (key, v.value) in outcome.served and self.of_another(outcome.run, v.run)
        }
        for key, value in {(key, self.entries[key].versions[number - 1].value) for key, number in wrote}:
            self.entries[key].claims[value].observed += sign
        for key, value in {(key, self.entries[key].versions[number - 1].value) for key, number in others}:
            self.entries[key].claims[value].corroborated += sign
        for key, number in sorted(wrote | others):
            self.entries[key].settle(gave=sign > 0, number=number)

    def of_another(self, user: int, author: int) -> bool:
        if user == author:
            return False
        boxes = RUNS[user][2], RUNS[author][2]
        return boxes[0] != boxes[1] if all(boxes) else RUNS[user][1] != RUNS[author][1]

    @rule(days=st.sampled_from([0.2, 1, 30, -2]))
    def tick(self, days: float) -> None:
        self.book.clock.tick(days=days)

    def agree(self) -> None:
        """What anybody would be told now."""
        for key, entry in self.entries.items():
            told = self.operator.read(key, entity=self.entity)
            claim = entry.claims[entry.current.value]
            beside = told["beside"] and told["beside"]["version"]
            expected = (entry.current.number, entry.current.value, entry.standing, entry.beside, claim.affirmed, len(claim.moves))
            assert expected == (told["version"], told["value"], told["standing"], beside, told["affirmed"], told["moves"])
            assert near(claim.confidence) == told["confidence"]
            assert told["effective_confidence"] <= told["confidence"]
            assert told["age_days"] >= 0

    def teardown(self) -> None:
        """The whole log, at the end: every counter, every version, every trace."""
        counted = [o for o in self.outcomes if o.in_base_rate]
        tries = len(counted) + sum(o.try_in_base_rate for o in self.outcomes)
        base = trust.base_rate(tries, sum(o.effective == "success" for o in counted))
        for key, entry in self.entries.items():
            history = self.operator.history(key, entity=self.entity)
            assert [(v.number, v.value, v.why) for v in entry.versions] == [(v["version"], v["value"], v["why"]) for v in history]
            why = self.operator.do("why", entity=self.entity, key=key)
            assert near(base) == why["base_rate"]
            told = {history[claim["versions"][0] - 1]["value"]: claim for claim in why["claims"]}
            assert set(entry.claims) == set(told)
            for value, claim in entry.claims.items():
                said = told[value]
                assert (near(claim.held), near(claim.failed)) == (said["held"], said["failed"])
                assert (claim.observed, claim.corroborated) == (said["observed"], said["corroborated"])
                assert (claim.standing, near(claim.confidence)) == (said["standing"], said["confidence"])
                for before, after in itertools.pairwise(said["moves"]):
                    assert before["after"] == after["before"]
        for n in range(len(RUNS)):
            trace = self.operator.do("trace", ref=self.session(n))
            assert ("verified" if trace["outcomes"] else "none") == trace["seal"]
            assert [(key, v.number) for key, v in self.runs[n].reads] == [(r["key"], r["version"]) for r in trace["reads"]]


def near(number: float) -> Any:
    return pytest.approx(number, abs=1e-12)


def run_model(book: Book, settings: Any) -> None:
    """Hold a record to the model, in two processes' view at once."""

    class Machine(RecordMachine):
        pass

    Machine.book, Machine.services = book, [book.open(), book.open()]
    run_state_machine_as_test(Machine, settings=settings)
