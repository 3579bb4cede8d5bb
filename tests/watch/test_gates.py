"""What may be drafted: one narrow way to yes, and every way to no with a reason that a person can argue with."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.errors import Conflict, InvalidRequest
from herdbook.watch import config, principal
from herdbook.watch.findings import Instance, KnownClass, Signals, Verdict
from herdbook.watch.gates import should_draft_pr
from herdbook.watch.rules import RULES

pytestmark = pytest.mark.slow

SORT = KnownClass(
    "acme/deploy", "regression-2026-07-30-search-confidence-sort", 3, "product_regression", ("least trusted first",)
)
AUGUST = KnownClass("acme/deploy", "incident-2026-08-14-api-startup-probe-timeout", 1, "cold_image", ("startup probe failed",))
CLEAR = Signals(lines=("AssertionError: least trusted first",), seen=("product_regression",))
HELD = Instance("fix-1", "success", 2, attested=True)
BROKE = Instance("load-1", "minor_failure", 2, attested=True)
LABELS = sorted({each.label for each in RULES if each.label != "product_regression"} | {"cold_image", "noise", "unexplained"})


def test_a_known_regression_whose_last_fix_held_is_drafted_and_says_on_what() -> None:
    """The one thing the loop earns would not be given, or could not be argued with."""
    verdict = should_draft_pr("product_regression", CLEAR, SORT, [BROKE, HELD, HELD])
    assert (True, ("acme/deploy regression-2026-07-30-search-confidence-sort 3",)) == (verdict.allowed, verdict.entries)
    assert ("load-1", "fix-1", "fix-1") == verdict.outcomes


@pytest.mark.parametrize("label", LABELS)
def test_no_other_label_is_drafted(label: str) -> None:
    """A slow image, a full disk or a cut stream would be answered with a change to the product."""
    assert not should_draft_pr(label, CLEAR, SORT, [HELD]).allowed


def test_a_cold_image_is_not_drafted_even_if_handed_a_regression_and_a_success() -> None:
    """An actor that is sure of itself would open the pull request that the whole gate exists to stop."""
    slow = replace(CLEAR, seen=("product_regression", "startup_unhealthy"))
    assert not should_draft_pr("product_regression", CLEAR, AUGUST, [HELD]).allowed
    assert not should_draft_pr("product_regression", slow, SORT, [HELD]).allowed
    assert not should_draft_pr("product_regression", replace(CLEAR, seen=("cold_image",)), SORT, [HELD]).allowed


def test_a_first_sighting_is_not_drafted() -> None:
    """What nobody has named or resolved would be mended by guessing."""
    assert "first sighting" in should_draft_pr("product_regression", CLEAR, None, []).reason
    assert not should_draft_pr("product_regression", CLEAR, SORT, []).allowed


def test_a_fix_that_did_not_hold_is_not_drafted_again_and_a_human_is_asked() -> None:
    """The same broken fix would be drafted a third time."""
    verdict = should_draft_pr("product_regression", CLEAR, SORT, [HELD, BROKE])
    assert not verdict.allowed
    assert "the fix didn't hold" in verdict.reason
    assert "a human should look" in verdict.reason
    assert ("fix-1", "load-1") == verdict.outcomes


def test_more_failures_than_successes_outweigh_a_last_success() -> None:
    """A class that mostly fails would be drafted on its lucky day."""
    assert not should_draft_pr("product_regression", CLEAR, SORT, [BROKE, BROKE, HELD]).allowed
    assert not should_draft_pr("product_regression", CLEAR, replace(SORT, standing="contested"), [HELD]).allowed


def test_ambiguity_is_no() -> None:
    """A migration that is still running would be drafted as a regression."""
    assert not should_draft_pr("product_regression", replace(CLEAR, ambiguous_with=("migration_race",)), SORT, [HELD]).allowed


def test_what_a_box_says_of_itself_earns_nothing_and_its_failures_count() -> None:
    """An actor could earn its own permission."""
    assert not should_draft_pr("product_regression", CLEAR, SORT, [replace(HELD, attested=False)]).allowed
    assert not should_draft_pr("product_regression", CLEAR, SORT, [HELD, replace(BROKE, attested=False)]).allowed


@given(
    label=st.sampled_from([*LABELS, "product_regression"]),
    seen=st.lists(st.sampled_from([*LABELS, "product_regression"]), max_size=3),
    doubts=st.lists(st.sampled_from(LABELS), max_size=2),
    matched=st.sampled_from([None, SORT, AUGUST]),
    history=st.lists(st.sampled_from([HELD, BROKE, replace(HELD, attested=False)]), max_size=5),
)
def test_yes_implies_every_condition(
    label: str, seen: list[str], doubts: list[str], matched: KnownClass | None, history: list[Instance]
) -> None:
    """Some combination would slip past the rules one by one."""
    verdict: Verdict = should_draft_pr(label, Signals(seen=tuple(seen), ambiguous_with=tuple(doubts)), matched, history)
    assert "" != verdict.reason
    if verdict.allowed:
        last = [each for each in history if each.attested or not each.held][-1]
        assert (label, matched, doubts, True) == ("product_regression", SORT, [], last.held)
        assert not {"cold_image", "startup_unhealthy"} & set(seen)


@pytest.mark.slow
def test_init_writes_gates_that_pass_their_own_tests_and_then_run(tmp_path: Path) -> None:
    """The principal's first copy would be broken, or ours would go on deciding."""
    ours = tmp_path / "oncall"
    assert ["gates.py", "test_gates.py", "watch.toml"] == [path.name for path in principal.init(ours)]
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ours)], capture_output=True, text=True
    )
    assert 0 == tested.returncode, tested.stdout
    mine = "from herdbook.watch.findings import Verdict\ndef should_draft_pr(*asked):\n    return Verdict(False, 'mine')\n"
    (ours / "gates.py").write_text(mine)
    assert "mine" == principal.load_gate(ours / "gates.py")("product_regression", CLEAR, SORT, [HELD]).reason
    assert should_draft_pr is principal.load_gate(None)


def test_the_gates_that_init_wrote_are_the_ones_that_its_settings_name(tmp_path: Path) -> None:
    """What a person changes in their gates.py would change nothing."""
    principal.init(tmp_path)
    (tmp_path / "gates.py").write_text(
        "from herdbook.watch.gates import no\ndef should_draft_pr(*asked):\n    return no('mine', None)\n"
    )
    gate = principal.load_gate(config.load(tmp_path / "watch.toml").gates)
    assert "mine" == gate("product_regression", CLEAR, SORT, [HELD]).reason


def test_gates_are_never_overwritten_nor_passed_over(tmp_path: Path) -> None:
    """The rules that hold the actor would be lost to a command typed twice, or to a file that is missing."""
    principal.init(tmp_path)
    with pytest.raises(Conflict):
        principal.init(tmp_path)
    with pytest.raises(InvalidRequest):
        principal.load_gate(tmp_path / "none.py")
    (tmp_path / "gates.py").write_text("x = 1\n")
    with pytest.raises(InvalidRequest):
        principal.load_gate(tmp_path / "gates.py")


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyError('x')",
        "raise SystemExit(3)",
        "return True",
        "return None",
        "return Verdict('no', 'a text is true')",
        "return Verdict(1, 'a number is true')",
        "return Verdict(True, None)",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        'import os; os.write(1, b\'{"verdict": {"allowed": true, "reason": ""}}\'); raise KeyError',
        "import sys; sys.setrecursionlimit(1 << 30); return should_draft_pr(*asked)",
    ],
)
def test_gates_that_fail_or_give_no_verdict_allow_nothing_and_end_no_worker(tmp_path: Path, body: str) -> None:
    """A slip in a person's file would stop the watching of everything, or let a draft through."""
    file = tmp_path / "gates.py"
    file.write_text(f"from herdbook.watch.findings import Verdict\ndef should_draft_pr(*asked):\n    {body}\n")
    verdict = principal.load_gate(file)("product_regression", CLEAR, SORT, [HELD])
    assert (False, True) == (verdict.allowed, "a human should mend it" in verdict.reason)


@pytest.mark.parametrize("text", ["def (", "1 / 0", "import sys; sys.exit(3)", "\0"])
def test_gates_that_cannot_be_run_are_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    """The worker would end with a stack trace, or with no word at all."""
    (tmp_path / "gates.py").write_text(text)
    with pytest.raises(InvalidRequest, match="cannot be run, mend it"):
        principal.load_gate(tmp_path / "gates.py")


@pytest.mark.parametrize(
    "body", ["while True: pass", "import time; time.sleep(600)", "import os; os.fork() or os.setsid(); os.wait()"]
)
def test_gates_that_do_not_end_allow_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """One line in a person's file would stop the watching of everything, for ever."""
    file = tmp_path / "gates.py"
    file.write_text(f"def should_draft_pr(*asked):\n    {body}\n")
    gate = principal.load_gate(file)
    monkeypatch.setattr(principal, "GATE_SECONDS_MAX", 1.0)
    verdict = gate("product_regression", CLEAR, SORT, [HELD])
    assert (False, True) == (verdict.allowed, "a human should mend it" in verdict.reason)


def test_what_gates_print_or_patch_stays_with_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A `print` would be taken for the answer, or one file's tricks would change the rules of the worker itself."""
    file = tmp_path / "gates.py"
    file.write_text(
        "import herdbook.watch.gates as ours\nprint('loading')\nours.DRAFTABLE = 'oom'\n"
        "def should_draft_pr(*asked):\n    print('asked')\n    return ours.should_draft_pr(*asked)\n"
    )
    verdict = principal.load_gate(file)("product_regression", CLEAR, SORT, [HELD])
    assert (False, "product_regression is not a oom: written down, no draft") == (verdict.allowed, verdict.reason)
    assert should_draft_pr("product_regression", CLEAR, SORT, [HELD]).allowed
    assert "" == capfd.readouterr().out


def test_gates_get_what_they_are_asked_about_as_it_is(tmp_path: Path) -> None:
    """A rule of theirs about confidence, a fix or a version would see something else than the record."""
    file = tmp_path / "gates.py"
    file.write_text(
        "from herdbook.watch.findings import Verdict\ndef should_draft_pr(*asked):\n    return Verdict(True, repr(asked))\n"
    )
    asked = ("product_regression", CLEAR, SORT, [HELD])
    assert repr(asked) == principal.load_gate(file)(*asked).reason
