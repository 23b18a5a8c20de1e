"""Draws by which thresholds rules fire: of each its value in the settings that this page reads, and what it means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

from pipeline.analysis.rules.rule import rules_by_name, settings_of
from pipeline.config.settings import load_settings
from pipeline.dashboard.web.parts.grid import Column, grid

_COLUMNS = (
    Column("rule", "rule"),
    Column("setting", "threshold", help="Of the settings `stream.findings`."),
    Column("value", "value", help="In the settings that this page reads; a job may have others."),
    Column("default", "by default"),
    Column("what", "what", width="large"),
)


def draw_thresholds(rules: Iterable[str], key: str) -> None:
    """Draw the thresholds of some rules as a list that opens; nothing where they have none.

    Args:
        rules: their names; of one that is not installed nothing is known.
        key: of the list.
    """
    rows = threshold_rows(rules, load_settings().stream.findings)
    if rows:
        with st.expander("Thresholds of these rules", icon=":material/tune:"):
            grid(rows, _COLUMNS, key=f"thresholds {key}")


def threshold_rows(rules: Iterable[str], settings: Any) -> list[dict[str, str]]:
    """A row for each threshold of some rules.

    Args:
        rules: names of rules, in order.
        settings: with a value for each threshold.
    """
    known = rules_by_name()
    return [
        {
            "rule": known[name].title, "setting": setting, "value": _text(getattr(settings, setting, field.default)),
            "default": _text(field.default), "what": field.description or "",
        }
        for name in rules
        if name in known
        for setting, field in settings_of(known[name]).items()
    ]  # fmt: skip


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset)) else f"{value}"
