"""Former names of settings: each still works for one release, with a warning that names the new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.tables import TABLES

FORMER_NAMES = {
    "stream.rows_in_one_process": "local_row_limit",
    "stream.answer_timeout": "response_timeout",
    "stream.findings.patience_periods": "silence_periods",
    "stream.findings.in_vain_seconds": "retry_without_success_seconds",
    "stream.findings.poison_lives": "poison_restarts",
    "stream.findings.still_open_seconds": "resolved_after_seconds",
    "stream.findings.churn_work": "churn_requests",
    "work.strangers_units_per_second": "unanswered_units_per_second",
    "work.known_units_per_second": "answered_units_per_second",
    "work.live_known_units_per_second": "live_answered_units_per_second",
    **{f"maintain.keep_days.{one.former.full_name}": one.full_name for one in TABLES.values() if one.former},
}
"""The name today, in the same section, by the former name with its sections."""


def with_current_names(settings: Mapping[str, Any], prefix: str = "") -> tuple[dict[str, Any], list[str]]:
    """Replace former names in settings of one source.

    A section that holds both names keeps both, so that validation reports the former one as unknown.

    Args:
        settings: by name, sections as mappings.
        prefix: the sections that they are in, each with a dot.

    Returns:
        The settings under their current names, and a warning for each name that was replaced.
    """
    current, warnings = dict[str, Any](), list[str]()
    for name, value in settings.items():
        inner = value
        if isinstance(value, Mapping):
            inner, found = with_current_names(value, f"{prefix}{name}.")
            warnings += found
        new = FORMER_NAMES.get(f"{prefix}{name}")
        if new is None or new in settings:
            current[name] = inner
            continue
        current[new] = inner
        warnings.append(
            f"the setting {prefix}{name} is called {prefix}{new} now; the former name works in this release only"
        )
    return current, warnings


def former_name(name: str) -> str | None:
    """The former name, with its sections, of the setting that is called ``name`` now; None: it has none."""
    section, _, last = name.rpartition(".")
    found = (one for one, now in FORMER_NAMES.items() if now == last and one.rpartition(".")[0] == section)
    return next(found, None)
