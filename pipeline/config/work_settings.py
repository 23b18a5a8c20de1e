"""How much of a core the agent may spend on what connections ask for: three rates, from which all limits follow."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from pipeline.capture.tcp.work_limits import WorkLimits

_WHOLE = WorkLimits()
_FOLLOWING = {
    "unanswered_units_per_second": ("unanswered_units", "all_unanswered_units"),
    "answered_units_per_second": ("answered_units", "all_answered_units", "all_answered_units_per_second"),
    "live_answered_units_per_second": ("live_answered_units",),
}
"""Limits that are in proportion to each rate, as they are in the defaults."""


class WorkSettings(BaseModel):
    """What reading may cost. A unit is about a microsecond of one core; bytes on the wire pay for some of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unanswered_units_per_second: int = Field(
        default=_WHOLE.unanswered_units_per_second,
        ge=1,
        description="What all connections together may cost in a second of the capture before anything that they sent "
        "was answered; 200000 is a fifth of a core. Ten seconds of it may be spent at once, five by one connection. "
        "Raise it for captures of one direction, and for many clients that connect without being answered",
    )
    answered_units_per_second: int = Field(
        default=_WHOLE.answered_units_per_second,
        ge=1,
        description="What a connection may cost in a second of the capture whose requests are answered, and twice that "
        "all of them together; 1000000 is a core. A hundred seconds of it may be spent at once. Raise it for captures "
        "on disk with large replies of small values; lower it where strangers get answers",
    )
    live_answered_units_per_second: int = Field(
        default=_WHOLE.live_answered_units_per_second,
        ge=1,
        description="What all answered connections together may cost in a second where packets do not wait (capture "
        "live, --follow, standard input of now), where it is less than the setting above; 50 seconds of it may be "
        "spent at once. With what bytes pay a core takes 20 MB/s of the worst that clients whom a server answers can "
        "send. Raise it where clients are trusted, and commands many and small (MongoDB: 2,000 a second)",
    )

    def limits(self) -> WorkLimits:
        """The limits of a capture on disk; see :meth:`WorkLimits.when_live` for those of one under way."""
        chosen = self.model_dump()
        for rate, limits in _FOLLOWING.items():
            chosen |= {name: getattr(_WHOLE, name) * chosen[rate] // getattr(_WHOLE, rate) for name in limits}
        return replace(_WHOLE, **chosen)
