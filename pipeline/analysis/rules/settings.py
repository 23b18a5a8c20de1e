"""The settings ``stream.findings``: the thresholds of all rules together, by their names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import create_model
from pydantic.fields import FieldInfo

from pipeline.analysis.rules.rule import all_rules, settings_of
from pipeline.analysis.rules.thresholds import RuleThresholds


@lru_cache(maxsize=1)
def finding_settings_model() -> type[RuleThresholds]:
    """The model with what all rules go by, and what each does.

    Raises:
        TypeError: two rules mean something else by one name.
    """
    found: dict[str, FieldInfo] = {}
    for rule in all_rules():
        for name, field in settings_of(rule).items():
            known = found.setdefault(name, field)
            if repr(known) != repr(field):
                raise TypeError(f"rule {rule.name}: another rule goes by another threshold of the name {name}")
    new = {name: (field.annotation, field) for name, field in found.items() if name not in RuleThresholds.model_fields}
    fields: Any = new
    doc = "How much of a symptom makes a finding. Offsets and growth are records."
    return create_model("FindingSettings", __base__=RuleThresholds, __doc__=doc, **fields)


@lru_cache(maxsize=1)
def default_settings() -> Any:
    """The defaults of all settings."""
    return finding_settings_model()()


def finding_settings(**given: Any) -> Any:
    """The settings with some values, and the defaults of all others.

    Raises:
        ValidationError: one has a name that no rule goes by, or a value that is not allowed.
    """
    return finding_settings_model()(**given)
