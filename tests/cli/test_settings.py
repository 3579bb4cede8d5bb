"""Settings: each with a meaning, from one of three places, refused by name when it makes no sense."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from herdbook.base import limits, settings
from herdbook.base.settings import InvalidSetting, Settings, load


def test_every_setting_is_described_and_every_description_is_a_setting() -> None:
    """A setting would work without anybody knowing, or be described and do nothing."""
    assert [field.name for field in fields(Settings) if field.name != "sources"] == [each.name for each in settings.SETTINGS]
    assert [] == [each.name for each in settings.SETTINGS if each.env != f"HERDBOOK_{each.name.upper()}"]
    assert [] == [
        each.name for each in settings.SETTINGS if not each.meaning.endswith(".") or not each.env.startswith("HERDBOOK_")
    ]


def test_normal_says_what_it_gives_up() -> None:
    """Somebody would trade durability for speed without being told."""
    meaning = next(each.meaning for each in settings.SETTINGS if each.name == "synchronous")
    assert "power cut" in meaning.split("NORMAL")[1]


@pytest.mark.parametrize(
    "environment, home",
    [
        ({"HOME": "/u"}, "~/.local/share/herdbook"),
        ({"XDG_DATA_HOME": "/data"}, "/data/herdbook"),
        ({"XDG_DATA_HOME": "relative"}, "~/.local/share/herdbook"),
        ({"HERDBOOK_HOME": "/h", "XDG_DATA_HOME": "/data"}, "/h"),
        ({"HERDBOOK_HOME": "~/h"}, "~/h"),
    ],
)
def test_where_herdbook_lives(environment, home) -> None:
    """A record would be started where nobody looks for it."""
    found = load(environment)
    assert Path(home).expanduser() == found.home
    assert (found.home / "record.db", found.home / "seal.key") == (found.record, found.seal_key_file)


def test_the_environment_wins_over_the_file(tmp_path) -> None:
    """A setting for one command could not be given, or would not be told apart from the file's."""
    (tmp_path / "settings.toml").write_text('agent = "file"\nsynchronous = "normal"\nvalue_bytes_max = 1000\ndebug = true\n')
    found = load({"HERDBOOK_HOME": str(tmp_path), "HERDBOOK_AGENT": "environment", "HERDBOOK_URL": ""})
    assert ("environment", "NORMAL", 1000, True, None) == (
        found.agent,
        found.synchronous,
        found.value_bytes_max,
        found.debug,
        found.url,
    )
    sources = {each.setting.name: each.source for each in found}
    assert ("environment", "settings.toml", "default") == (sources["agent"], sources["synchronous"], sources["url"])


@pytest.mark.parametrize(
    "name, value",
    [
        ("HERDBOOK_SYNCHRONOUS", "OFF"),
        ("HERDBOOK_VALUE_BYTES_MAX", "-1"),
        ("HERDBOOK_VALUE_BYTES_MAX", "0"),
        ("HERDBOOK_VALUE_BYTES_MAX", "1e9"),
        ("HERDBOOK_VALUE_BYTES_MAX", "9" * 5000),
        ("HERDBOOK_VALUE_BYTES_MAX", str(limits.VALUE_BYTES_CEILING + 1)),
        ("HERDBOOK_URL", "ftp://x"),
        ("HERDBOOK_URL", "127.0.0.1:8765"),
        ("HERDBOOK_URL", "http://x\r\nHost: y"),
        ("HERDBOOK_KEY", "two words"),
        ("HERDBOOK_KEY", "naïve"),
        ("HERDBOOK_AGENT", "a\x1b[2J"),
        ("HERDBOOK_SESSION", " "),
        ("HERDBOOK_DEBUG", "perhaps"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(name, value, tmp_path) -> None:
    """A mistyped setting would be replaced by a default, and believed."""
    with pytest.raises(InvalidSetting, match=name):
        load({"HERDBOOK_HOME": str(tmp_path), name: value})


@pytest.mark.parametrize(
    "text, reason",
    [
        ("agnet = 1", "unknown setting 'agnet'"),
        ('home = "/x"', "unknown setting 'home'"),
        ("agent = 1", "agent in settings.toml"),
        ("record = 5", "record in settings.toml"),
        ("value_bytes_max = true", "value_bytes_max in settings.toml"),
        ("agent = ", "not TOML"),
        ("\x00", "not TOML"),
        ("a = 1\n" * 20_000, "over"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(text, reason, tmp_path) -> None:
    """A mistake in the file would be passed over, and its author would believe in it."""
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(InvalidSetting, match=reason):
        load({"HERDBOOK_HOME": str(tmp_path)})


def test_a_file_that_cannot_be_read_is_not_a_missing_one(tmp_path) -> None:
    """Settings that could not be read would count as not made."""
    (tmp_path / "settings.toml").mkdir()
    with pytest.raises(InvalidSetting, match="cannot be read"):
        load({"HERDBOOK_HOME": str(tmp_path)})


def test_the_credential_is_never_shown(tmp_path) -> None:
    """A key would end up in a log, a listing or a report."""
    secret = "hb_very_secret"
    found = load({"HERDBOOK_HOME": str(tmp_path), "HERDBOOK_KEY": secret})
    assert secret == found.key
    assert secret not in repr(found) + "".join(map(repr, found))
    with pytest.raises(InvalidSetting) as caught:
        load({"HERDBOOK_HOME": str(tmp_path), "HERDBOOK_KEY": f"{secret} \n"})
    assert secret not in caught.value.message


def test_settings_do_not_change() -> None:
    """One part of a process would work under other settings than another."""
    with pytest.raises(AttributeError):
        setattr(load({}), "agent", "x")  # noqa: B010  a checker refuses the plain form
