"""A picture of each rule, drawn from a recording in which it fires, as the page draws it.

`python -m tests.pipeline.dashboard.web.pictures.rule_pictures [RULE…]` (or `make rule-pictures`) diagnoses recordings,
writes `docs/screens/rules/RULE.png`, and puts each picture into the rule's page under docs/rules.
"""

from __future__ import annotations

import argparse
import io
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.analysis.rules.rule import all_rules
from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.dashboard.charts import finding_chart
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.errors import UserError
from tests.paths import ROOT
from tests.pipeline.analysis.rules.incidents import ALL, Recording, recordings
from tests.pipeline.dashboard.web.browser.screens import small_png

FOLDER = ROOT / "docs" / "screens" / "rules"
PAGES = ROOT / "docs" / "rules"
_BEST = {"mongo_slow_command": "troubled_mongodb", "poison_record": "sick_work_1s"}
"""Recordings that show a rule better than the one that would be chosen."""
_WIDTH = 640
_COLOURS = 64
_LINE = re.compile(r"!\[[^\]]*\]\(\.\./screens/rules/\w+\.png\)\n\n")


def shown_in(rule: str, some: Iterable[Recording]) -> Recording | None:
    """The recording that shows a rule: one that heals, if there is one, else the smallest."""
    there = [
        one for one in some if rule in {name for name, _ in one.expected} and _BEST.get(rule, one.name) == one.name
    ]
    return min(there, key=lambda one: (not one.name.startswith("sick"), one.pcap.stat().st_size), default=None)


def picture(lake: Path, rows: Iterable[dict[str, Any]]) -> bytes | None:
    """The picture of the first of these findings that has one, as a PNG of few colours."""
    for row in rows:
        try:
            chart = finding_chart(lake, row["finding_id"], width=_WIDTH)
        except UserError:
            continue
        drawn = io.BytesIO()
        chart.save(drawn, format="png", scale_factor=1)
        return small_png(drawn.getvalue(), [_COLOURS])
    return None


def with_picture(page: str, rule: str, recording: str) -> str:
    """A rule's page with its picture behind what it means."""
    text = _LINE.sub("", page)
    line = f"![What {rule} looks like, from the recording {recording}](../screens/rules/{rule}.png)\n\n"
    place = text.index("**What it rests on.**")
    return text[:place] + line + text[place:]


def main() -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description="Draw a picture of each rule.")
    parser.add_argument("rules", nargs="*", metavar="RULE")
    wanted = parser.parse_args().rules or [rule.name for rule in all_rules()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    some = recordings(ALL)
    chosen = {rule: shown_in(rule, some) for rule in wanted}
    for recording in some:
        of_this = [rule for rule, one in chosen.items() if one is recording]
        if of_this:
            _draw(recording, of_this)
    for rule in sorted(set(wanted) - {rule for rule, one in chosen.items() if one is not None}):
        print(f"{rule}: no recording shows it")


def _draw(recording: Recording, rules: Iterable[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="wirelake-rules-") as folder:
        found = diagnose(read_inputs([str(recording.pcap)]), StreamSettings())
        write_lake(Path(folder) / "lake", found.tables)
        rows = finding_rows(found.findings)
        for rule in rules:
            declared = {subject for name, subject in recording.expected if name == rule}
            mine = sorted(
                (row for row in rows if row["rule"] == rule and row["subject"] in declared),
                key=lambda row: (-len(row["evidence"]), row["subject"]),
            )
            drawn = picture(Path(folder) / "lake", mine)
            if drawn is None:
                print(f"{rule}: nothing of {recording.name} has a picture")
                continue
            (FOLDER / f"{rule}.png").write_bytes(drawn)
            page = PAGES / f"{rule}.md"
            page.write_text(with_picture(page.read_text(encoding="utf-8"), rule, recording.name), encoding="utf-8")
            print(f"{rule}: {recording.name}, {len(drawn):,} bytes", flush=True)


if __name__ == "__main__":
    main()
