"""A former name of a setting works, from a file and from the environment, with a warning that names the new one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from pipeline.config.former_names import FORMER_NAMES, former_name, with_current_names
from pipeline.config.settings import Settings, _warn, load_settings
from pipeline.errors import UserError


@pytest.fixture(autouse=True)
def _warns_anew() -> None:
    _warn.cache_clear()


def _setting(settings: BaseModel, name: str) -> object:
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("former", [name for name in FORMER_NAMES if not name.startswith("maintain.keep_days.")])
def test_a_former_name_leads_to_a_setting_of_today(former: str) -> None:
    section = former.rpartition(".")[0]
    assert _setting(Settings(), f"{section}.{FORMER_NAMES[former]}") is not None
    with pytest.raises(AttributeError):
        _setting(Settings(), former)
    assert former_name(f"{section}.{FORMER_NAMES[former]}") == former


def test_a_file_with_former_names_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        "stream: {rows_in_one_process: 7, findings: {poison_lives: 5}}\nwork: {known_units_per_second: 9}\n"
    )
    for _ in range(2):
        settings = load_settings(conf)
        assert settings.stream.local_row_limit == 7
        assert settings.stream.findings.poison_restarts == 5
        assert settings.work.answered_units_per_second == 9
    assert capsys.readouterr().err.splitlines() == [
        "warning: the setting stream.rows_in_one_process is called stream.local_row_limit now; "
        "the former name works in this release only",
        "warning: the setting stream.findings.poison_lives is called stream.findings.poison_restarts now; "
        "the former name works in this release only",
        "warning: the setting work.known_units_per_second is called work.answered_units_per_second now; "
        "the former name works in this release only",
    ]


def test_a_former_name_in_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text("stream: {findings: {silence_periods: 4, retry_without_success_seconds: 8}}\n")
    monkeypatch.setenv("WIRELAKE_STREAM__FINDINGS__PATIENCE_PERIODS", "6")
    found = load_settings(conf).stream.findings
    assert (found.silence_periods, found.retry_without_success_seconds) == (6, 8)
    assert "stream.findings.patience_periods is called stream.findings.silence_periods now" in capsys.readouterr().err


def test_a_table_may_be_kept_by_its_former_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text("maintain: {keep_days: {ops.news: 9, bronze.frames: 3}}\n")
    assert load_settings(conf).maintain.keep_days == {"ops.change_log": 9, "bronze.frames": 3}
    assert "maintain.keep_days.ops.news is called maintain.keep_days.ops.change_log now" in capsys.readouterr().err


def test_a_section_with_both_names_is_refused(tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text("stream: {rows_in_one_process: 7, local_row_limit: 8}\n")
    with pytest.raises(UserError, match=r"stream\.rows_in_one_process: there is no such key"):
        load_settings(conf)


def test_settings_of_today_are_taken_as_they_are() -> None:
    today = {"stream": {"local_row_limit": 7, "findings": {}}, "lake": "x"}
    assert with_current_names(today) == (today, [])
