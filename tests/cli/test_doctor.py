"""Doctor: what is not well is found, and comes with its fix."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from herdbook.surfaces.cli.commands import doctor

pytestmark = pytest.mark.slow


@pytest.fixture
def home(herdbook, tmp_path):
    """A herdbook home that is well."""
    assert 0 == herdbook("init").code
    return tmp_path / ".local" / "share" / "herdbook"


def examined(herdbook, *argv: str) -> tuple[int, list[str]]:
    """The exit code, and what is not well; each with a fix."""
    told = herdbook("doctor", "--json", "--no-box", *argv)
    answer = told.json
    bad = [each for each in answer["findings"] if not each["ok"]]
    assert [] == [each["what"] for each in bad if not each["fix"]]
    assert answer["ok"] is not bool(bad)
    return told.code, [each["what"] for each in bad]


def test_a_fresh_record_is_well(herdbook, home) -> None:
    """Doctor would cry wolf on every new machine, and nobody would listen."""
    assert (0, []) == examined(herdbook)
    told = herdbook("doctor", "--no-box")
    assert (0, "All is well.") == (told.code, told.out.splitlines()[-1])


def test_holdback_is_suggested_once_it_would_tell_something(herdbook, home, monkeypatch) -> None:
    """A record that could prove what helps would never be asked to."""
    monkeypatch.setattr(doctor, "OUTCOMES_WORTH", 2)
    for number in range(2):
        assert "holdback" not in herdbook("doctor", "--no-box").out
        herdbook("write", "acme/ci", "tz", str(number), "--why", "w", "--session", f"s{number}")
        herdbook("outcome", "success", "--session", f"s{number}", "--ref", f"r{number}")
    told = herdbook("doctor", "--no-box")
    assert (0, True) == (told.code, "herdbook tune ENTITY holdback=0.15" in told.out)
    herdbook("tune", "holdback=0.15")
    assert "holdback" not in herdbook("doctor", "--no-box").out


@pytest.mark.parametrize(
    "embed, told",
    [
        ("http://127.0.0.1:9/v1#x", "meaning: the embedder at http://127.0.0.1:9/v1 did not answer with vectors"),
        ("word2vec", "meaning: embed=word2vec names no embedder"),
        ("onnx:/nowhere", "meaning: embed=onnx:/nowhere cannot be read (No such file or directory)"),
    ],
)
def test_an_embedder_that_was_set_and_cannot_be_asked_is_found(embed, told, herdbook, home, monkeypatch) -> None:
    """Entries would be found by their words only, and doctor would say that all is well."""
    monkeypatch.setenv("HERDBOOK_EMBED", embed)
    assert (1, [told]) == examined(herdbook)
    assert 0 == herdbook("brief", "acme/ci", "--task", "x", "--no-session").code


def test_no_record_is_said_and_none_is_made(herdbook, tmp_path) -> None:
    """Doctor would report on a record that it has just made up."""
    code, bad = examined(herdbook)
    assert (1, ["record: there is none at ~/.local/share/herdbook/record.db"]) == (code, bad)
    assert not (tmp_path / ".local/share/herdbook/record.db").exists()
    assert "    fix: herdbook init" in herdbook("doctor", "--no-box").out


def test_an_open_seal_key_is_found(herdbook, home) -> None:
    """Anybody on the machine could forge what the record says."""
    (home / "seal.key").chmod(0o644)
    code, bad = examined(herdbook)
    assert 1 == code
    assert ["seal key: ~/.local/share/herdbook/seal.key is open to others"] == bad


def test_only_what_was_set_is_named(herdbook, home, monkeypatch) -> None:
    """Naming a record would look as if an address had been given too."""
    monkeypatch.delenv("HERDBOOK_EMBED")  # which the tests set
    told = herdbook("doctor", "--no-box", "--record", str(home / "record.db"))
    assert "settings that are not the default: record (command line)\n" in told.out
    told = herdbook("doctor", "--no-box", "--record", str(home / "record.db"), env={"HERDBOOK_URL": "http://127.0.0.1:9"})
    assert "settings that are not the default: record (command line)\n" in told.out


def test_the_home_is_named_as_such(herdbook) -> None:
    """The line about the disk would end in a dot that belongs to no sentence."""
    assert "free under ~\n" in herdbook("doctor", "--no-box").out


def test_a_seal_key_that_is_no_text_is_said_plainly(herdbook, home) -> None:
    """Whoever put a wrong file there would read about codecs."""
    (home / "seal.key").write_bytes(b"\x80\xff" * 32)
    told = herdbook("ls")
    assert (5, 1) == (told.code, told.err.count("\n"))
    assert f"{home}/seal.key does not hold a seal key: put the right key file back" in told.err
    assert "codec" not in told.err + herdbook("doctor", "--no-box").out
    (home / "seal.key").write_text("no hexadecimal number")
    assert "does not hold a seal key: put the right" in herdbook("ls").err


def test_a_missing_seal_key_is_found(herdbook, home) -> None:
    """Everything would be served unverified, and nobody would know."""
    herdbook("write", "acme/ci", "tz", "1", "--why", "w")
    (home / "seal.key").unlink()
    code, bad = examined(herdbook)
    assert 1 == code
    assert any("missing" in each for each in bad)


def test_a_wrong_seal_key_is_found(herdbook, home) -> None:
    """Genuine entries would be refused as forged, without a hint at the key."""
    herdbook("write", "acme/ci", "tz", "1", "--why", "w")
    (home / "seal.key").write_text("00" * 32)
    code, bad = examined(herdbook)
    assert 1 == code
    assert any("seal key" in each for each in bad)


@pytest.mark.parametrize("name", ["outcome_cause_moves_trust_v1", "version_is_immutable_v1"])
def test_a_dropped_trigger_is_found(name, herdbook, home) -> None:
    """Outcomes would stop moving trust, or history could be rewritten, in silence."""
    with closing(sqlite3.connect(home / "record.db")) as connection:
        connection.execute(f"DROP TRIGGER {name}")
    code, bad = examined(herdbook)
    assert 1 == code
    assert any(name in each for each in bad)


def test_a_disarmed_trust_trigger_is_found(herdbook, home) -> None:
    """A trigger of the right name that moves nothing would pass for the real one."""
    with closing(sqlite3.connect(home / "record.db")) as connection:
        connection.execute("DROP TRIGGER outcome_cause_moves_trust_v1")
        connection.execute("CREATE TRIGGER outcome_cause_moves_trust_v1 AFTER INSERT ON outcome_cause BEGIN SELECT 1; END")
    code, bad = examined(herdbook)
    assert (1, ["trust trigger: did not move a confidence when it was tried"]) == (code, bad)


def test_doctor_changes_nothing(herdbook, home) -> None:
    """Looking would leave traces in the record."""

    def dump() -> list[str]:
        with closing(sqlite3.connect(home / "record.db")) as connection:
            return list(connection.iterdump())

    herdbook("write", "acme/ci", "tz", "1", "--why", "w")
    before = dump()
    examined(herdbook)
    assert before == dump()


def test_a_damaged_file_is_found(herdbook, home) -> None:
    """A record that cannot be opened would end doctor itself."""
    for path in home.glob("record.db-*"):
        path.unlink()
    (home / "record.db").write_bytes(b"not a database" * 1000)
    code, bad = examined(herdbook)
    assert 1 == code
    assert 1 == len(bad)


def test_a_server_that_is_away_is_found(herdbook) -> None:
    """Doctor would examine the local record while the commands use another."""
    code, bad = examined(herdbook, "--url", "http://127.0.0.1:9")
    assert 1 == code
    assert "http://127.0.0.1:9" in bad[0]


def test_a_key_in_an_open_file_is_found(herdbook, home) -> None:
    """A credential would be readable by everybody on the machine."""
    (home / "settings.toml").write_text('key = "hb_secret"\n')
    (home / "settings.toml").chmod(0o644)
    told = herdbook("doctor", "--json", "--no-box")
    assert 1 == told.code
    assert "hb_secret" not in told.out
    assert any("holds a key that others can read" in each["what"] for each in told.json["findings"])


def test_normal_says_what_it_gives_up(herdbook, home) -> None:
    """Somebody would trade durability for speed without being told."""
    told = herdbook("doctor", "--no-box", env={"HERDBOOK_SYNCHRONOUS": "NORMAL"})
    assert 0 == told.code
    assert "a power cut may take back the last acknowledged writes" in told.out


@pytest.mark.isolation
def test_a_box_is_really_tried(herdbook, home) -> None:
    """Doctor would promise boxes that do not start."""
    told = herdbook("doctor", "--json").json
    assert any("a box started and was isolated" in each["what"] for each in told["findings"])


def test_the_gateway_is_explained(herdbook, home) -> None:
    """Boxes would be refused, and nobody would know that a key file, a rule or a grant is missing."""

    def said() -> tuple[int, str]:
        told = herdbook("doctor", "--no-box")
        return told.code, told.out

    assert "gateway: there are no connections" in said()[1]
    assert 0 == herdbook("gateway", "add", "github", "--to", "https://api.github.com", stdin=b"a-secret\n").code
    code, text = said()
    assert (0, True, True) == (code, "nothing is allowed; herdbook gateway rules github" in text, "no box may use it" in text)
    assert "gateway: the vault key is at" in text
    assert "gateway: no server of its own at" in text or "gateway: a server answers at" in text
    key = home / "gateway.key"
    key.chmod(0o644)
    assert (1, True) == (said()[0], "chmod 600" in said()[1])
    key.unlink()
    code, text = said()
    assert (1, True) == (code, "gateway: there is no key at" in text)
    assert "a-secret" not in text
