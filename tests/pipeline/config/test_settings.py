"""Settings: precedence, and messages that name the key and what is allowed."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

from pipeline.analysis.rules.settings import finding_settings_model
from pipeline.config.settings import Settings, SqlSettings, StreamSettings, keys_of, load_settings
from pipeline.errors import UserError
from tests.paths import ROOT


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a settings file; no WIRELAKE_ variable of the machine reaches the test."""
    for name in list(os.environ):
        if name.startswith("WIRELAKE_"):
            monkeypatch.delenv(name)

    def _write(text: str) -> Path:
        path = tmp_path / "settings.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def test_the_committed_file_holds_the_defaults(write) -> None:
    assert load_settings(ROOT / "conf" / "local.yaml") == load_settings()


def test_the_committed_file_shows_every_key() -> None:
    text = (ROOT / "conf" / "local.yaml").read_text(encoding="utf-8")
    names = list(Settings.model_fields)
    names += [
        name for section in (StreamSettings, finding_settings_model(), SqlSettings) for name, _ in keys_of(section)
    ]
    assert [name for name in names if f"{name}:" not in text] == []


def test_command_line_beats_environment_beats_file_beats_default(write, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = write(
        "lake: /file\nagent_id: file\nlanding: /file\nstream: {max_files_per_trigger: 7, trigger_seconds: 3}\n"
    )
    monkeypatch.setenv("WIRELAKE_LAKE", "/env")
    monkeypatch.setenv("WIRELAKE_AGENT_ID", "env")
    monkeypatch.setenv("WIRELAKE_STREAM__TRIGGER_SECONDS", "1.5")
    settings = load_settings(conf, lake="/option", landing=None)
    assert (settings.lake, settings.agent_id, settings.landing) == ("/option", "env", "/file")
    assert (settings.stream.trigger_seconds, settings.stream.max_files_per_trigger) == (1.5, 7)
    assert settings.payload_policy == "lengths"


def test_an_empty_file_is_all_defaults(write) -> None:
    assert load_settings(write("# nothing\n")) == load_settings()


def test_spark_settings_become_texts(write) -> None:
    assert load_settings(write("spark: {spark.ui.enabled: true, spark.sql.shuffle.partitions: 8}\n")).spark == {
        "spark.ui.enabled": "true",
        "spark.sql.shuffle.partitions": "8",
    }


def test_a_file_that_cannot_be_read_is_told_without_numbers_of_the_system(tmp_path) -> None:
    with pytest.raises(UserError, match=r"nix\.yaml: No such file or directory$"):
        load_settings(tmp_path / "nix.yaml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"it is no text in UTF-8$"):
        load_settings(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("text", "key", "advice"),
    [
        ("strem: {}", "strem:", "did you mean `stream`?"),
        ("stream: {triger_seconds: 1}", "stream.triger_seconds:", "allowed: trigger_seconds, gold_trigger_seconds"),
        ("stream: {trigger_seconds: 0}", "stream.trigger_seconds:", "give more than 0, not 0"),
        ("stream: {trigger_seconds: .nan}", "stream.trigger_seconds:", "finite"),
        ("stream: {max_files_per_trigger: many}", "stream.max_files_per_trigger:", "give a whole number"),
        (
            "stream: {findings: {competing_returns: 0}}",
            "stream.findings.competing_returns:",
            "give at least 1",
        ),
        ("payload_policy: everything", "payload_policy:", "'lengths', 'full', 'hash' or 'none'"),
        ("agent_id: ../etc", "agent_id:", "match pattern"),
        ("spark: {shuffle: 2}", "spark:", "begin with 'spark.'"),
        ("- a list", "name: value", "landing, lake, agent_id"),
        ("a: [", "is not YAML", "line 1"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(write, text: str, key: str, advice: str) -> None:
    with pytest.raises(UserError) as caught:
        load_settings(write(text))
    assert key in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize("value", ["4711471147114711", "[s3cret-s3cret-s3cret]", "{s3cret: s3cret}"])
def test_a_payload_key_is_never_shown(write, value: str) -> None:
    with pytest.raises(UserError, match=r"payload_key: .* put it in quotes") as caught:
        load_settings(write(f"payload_key: {value}\n"))
    shown = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in shown
    assert "4711" not in shown
    settings = load_settings(write("payload_key: s3cret-s3cret-s3cret\n"))
    assert settings.payload_key is not None
    assert settings.payload_key.get_secret_value() == "s3cret-s3cret-s3cret"
    assert "s3cret" not in f"{settings} {settings!r} {settings.model_dump_json()}"


@pytest.mark.parametrize("name", ["payload_key_file", "payload_policy", "landing", "agent_id", "file_access"])
def test_a_key_of_digits_is_not_shown_wherever_a_text_belongs(write, name: str) -> None:
    conf = write(f"{name}: {'4711' * 4}\n")
    with pytest.raises(UserError, match=f"{name}: ") as caught:
        load_settings(conf)
    assert "47114711" not in "".join(traceback.format_exception(caught.value))


CANARY = "s3cret-s3cret-s3cret"


@pytest.mark.parametrize(
    "text",
    [
        f"payload_key: [{CANARY}]",
        f"payload_key: {{{CANARY}: 1}}",
        f"payload_keys: {CANARY}",
        f"payload_policy: {CANARY}",
        f"agent_id: '{CANARY} {CANARY}'",
        f"landing: [{CANARY}]",
        f"spark: {CANARY}",
        f"spark: [{CANARY}]",
        f"stream: {CANARY}",
        f"stream: {{trigger_seconds: {CANARY}}}",
        f"stream: {{findings: {{lookback: {CANARY}}}}}",
        f"maintain: {{keep_days: {{bronze.frames: {CANARY}}}}}",
        f"payload_key: {CANARY}: {CANARY}",
        f"payload_key: '{CANARY}",
        f"a: [ {CANARY}",
        f"a: %{CANARY}",
        f"a: *{CANARY}",
        f"a: !!{CANARY} x",
        f"? [{CANARY}]\n: 1",
        f"a: \x01{CANARY}",
        f"- {CANARY}",
    ],
)
def test_no_error_shows_a_value_that_is_a_text(write, text: str) -> None:
    with pytest.raises(UserError) as caught:
        load_settings(write(text))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["STREAM", "SPARK", "STREAM__FINDINGS", "STREAM__TRIGGER_SECONDS", "PAYLOAD_POLICY"])
def test_no_error_shows_a_value_of_the_environment(write, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    conf = write("")
    monkeypatch.setenv(f"WIRELAKE_{name}", CANARY)
    with pytest.raises(UserError, match=r"the environment|settings\.yaml") as caught:
        load_settings(conf)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_all_errors_are_reported_at_once(write) -> None:
    with pytest.raises(UserError) as caught:
        load_settings(write("strem: {}\npayload_policy: everything\n"))
    assert len(str(caught.value).splitlines()) == 3


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read the settings file .*nowhere\.yaml"):
        load_settings(tmp_path / "nowhere.yaml")


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().agent_id = "other"  # type: ignore[misc]
