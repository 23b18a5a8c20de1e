"""What ``wirelake findings`` shows of a lake made by hand, and its exit code."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands.findings import read_incidents
from pipeline.commands.incidents import show_incidents
from pipeline.errors import UserError
from pipeline.tables import FINDINGS, GAPS
from pipeline.terminal.console import Console
from tests.pipeline.harms import HARMS
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import row, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    findings = [
        row(
            FINDINGS, finding_id="1", rule="stopped", subject="g/t", severity="critical", state="resolved", group_id="g"
        ),
        row(
            FINDINGS, finding_id="2", rule="throttled", subject="app", severity="warning", state="ongoing", evidence=[]
        ),
    ]
    write(tmp_path, FINDINGS, findings)
    return tmp_path


@pytest.mark.parametrize(
    ("option", "rules", "exit_code"),
    [([], ["stopped", "throttled"], 1), (["--ongoing"], ["throttled"], 0), (["--open"], ["throttled"], 0)],
)
def test_what_is_over_counts_unless_only_what_is_open_is_asked_for(
    lake: Path, option: list[str], rules: list[str], exit_code: int
) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--json", *option])
    assert [json.loads(line)["rule"] for line in done.stdout.splitlines()] == rules
    assert done.exit_code == exit_code


@pytest.mark.parametrize(
    ("options", "rules", "exit_code"),
    [
        (["--rule", "throttled"], ["throttled"], 0),
        (["--severity", "critical"], ["stopped"], 1),
        (["--rule", "throttled", "--rule", "stopped", "--severity", "warning"], ["throttled"], 0),
        (["--severity", "info"], [], 0),
    ],
)
def test_rules_and_severities_are_chosen(lake: Path, options: list[str], rules: list[str], exit_code: int) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--json", *options])
    assert [json.loads(line)["rule"] for line in done.stdout.splitlines()] == rules
    assert done.exit_code == exit_code
    text = CliRunner().invoke(app, ["findings", "--lake", str(lake), *options])
    assert text.exit_code == exit_code
    assert ("No incidents match these filters." in text.stdout) == (not rules)
    flat = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--flat", *options])
    assert ("No incidents match these filters." in flat.stdout) == (not rules)
    assert flat.exit_code == exit_code


@pytest.mark.parametrize(("option", "near"), [("--rule", "but throttled"), ("--severity", "critical, warning, info")])
def test_names_that_nothing_has_are_refused(lake: Path, option: str, near: str) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), option, "throtled"])
    assert near in str(done.exception)


def test_no_rule_is_far_fetched(lake: Path) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--rule", "all"])
    assert str(done.exception).startswith("there is no rule 'all': docs/findings.md")


def test_what_serves_the_addresses_is_said_once_and_before_them(lake: Path) -> None:
    told = CliRunner().invoke(app, ["findings", "--lake", str(lake)]).stdout
    command = f"run first: wirelake dashboard --lake {lake}"
    assert told.count("wirelake dashboard") == 1
    assert told.index(command) < told.index("  http://")
    assert "wirelake dashboard" not in CliRunner().invoke(app, ["findings", "--lake", str(lake), "--flat"]).stdout


def test_what_holds_no_findings_is_told_apart(lake: Path, tmp_path: Path) -> None:
    shutil.rmtree(lake / FINDINGS.path)
    write(lake, GAPS, [])
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake)])
    assert "holds no findings yet" in str(done.exception)
    done = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path / "nowhere")])
    assert "there is no lake at" in str(done.exception)
    assert "wirelake diagnose FILE --lake DIR" in str(done.exception)


def test_incidents_come_first_and_findings_one_by_one_when_asked_for(lake: Path) -> None:
    told = CliRunner().invoke(app, ["findings", "--lake", str(lake)])
    assert told.stdout.index("WARNING Brokers hold app back") < told.stdout.index(
        "CRITICAL RESOLVED Group g has stopped"
    )
    assert "2 incidents (1 critical, 1 warning) from 2 findings" in told.stdout
    assert f"wirelake sql --lake {lake} " in told.stdout
    flat = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--flat"])
    assert flat.stdout.index("CRITICAL RESOLVED stopped  g/t") < flat.stdout.index("WARNING throttled  app")
    assert "2 findings: 1 critical, 1 warning" in flat.stdout


def test_a_state_stands_before_what_it_is_of_in_one_wording(tmp_path: Path) -> None:
    given = {"rule": "stopped", "subject": "g/t", "severity": "critical", "state": "unknown", "group_id": "g"}
    write(tmp_path, FINDINGS, [row(FINDINGS, finding_id="1", **given)])
    told = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path)]).stdout
    assert "CRITICAL MAY BE ONGOING Group g has stopped" in told
    assert "may be ongoing: seen last at" in " ".join(told.split())
    assert "CRITICAL MAY BE ONGOING stopped  g/t" in CliRunner().invoke(
        app, ["findings", "--lake", str(tmp_path), "--flat"]
    ).stdout  # fmt: skip


def test_findings_of_an_older_release_have_incidents(tmp_path: Path) -> None:
    older = replace(FINDINGS, columns=FINDINGS.columns[:-2])
    write(tmp_path, older, [row(older, finding_id="1", rule="stopped", subject="g/t", severity="critical", state=None)])
    done = CliRunner().invoke(app, ["findings", "--lake", str(tmp_path), "--json"])
    (found,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert found["incident_id"]
    assert list(found)[-2:] == ["incident_id", "moments"]
    assert found["moments"] is None


def test_a_finding_without_evidence_names_no_exchanges(lake: Path) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--ongoing", "--flat"])
    assert "throttled" in done.stdout
    assert "exchanges" not in done.stdout


@pytest.mark.parametrize("option", [[], ["--flat"], ["--json"]])
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_table_that_is_damaged_is_a_sentence(lake: Path, harm: Callable[[Path], None], option: list[str]) -> None:
    harm(lake / FINDINGS.path)
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), *option])
    assert isinstance(done.exception, UserError)
    assert re.search("cannot read|holds no findings|leads out of its folder", str(done.exception))


def test_a_finding_of_an_older_layout_lacks_texts(lake: Path) -> None:
    rows = DeltaTable(str(lake / FINDINGS.path)).to_pyarrow_table()
    write_deltalake(
        str(lake / FINDINGS.path), rows.drop_columns(["advice", "evidence", "state"]), mode="overwrite",
        schema_mode="overwrite",
    )  # fmt: skip
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--flat"])
    assert done.exit_code == 1
    assert "2 findings: 1 critical, 1 warning" in done.stdout
    assert "what to do" not in done.stdout


def shown(incidents: list[dict[str, Any]], findings: list[dict[str, Any]], height: int, *, terminal: bool) -> list[str]:
    console = Console(file=(out := StringIO()), width=100, height=height, force_terminal=terminal, no_color=True)
    show_incidents(incidents, findings, lambda row: [row["sql"]], console)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()


def test_incidents_fit_the_terminal_with_the_first_in_full(tmp_path: Path) -> None:
    incidents, findings = read_incidents(diagnosed_lake(tmp_path, "stuck_commit", "mongodb/troubled_mongodb"))
    whole = shown(incidents, findings, 40, terminal=False)
    assert whole == [line.rstrip() for line in shown(incidents, findings, 200, terminal=True)]
    brief = shown(incidents, findings, 40, terminal=True)
    assert len(whole) > 40 >= len(brief)
    begin = next(number for number, line in enumerate(whole[1:], 1) if not line)
    happened, evidence = (
        next(number for number, line in enumerate(whole) if line.startswith(f"  {label}"))
        for label in ("happened", "evidence")
    )
    first = [*whole[:happened], *whole[evidence:begin]]
    assert [line.rstrip() for line in brief[: len(first)]] == first
    text = " ".join(brief)
    assert all(row["headline"][:40] in text for row in incidents)
    assert all(row["immediate_action"][:40] in text for row in incidents if row["state"] != "resolved")
    assert brief[-1].startswith("Shortened")
