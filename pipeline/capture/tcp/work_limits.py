"""What reading may cost the agent, by connection and in all: settings, each with the attack that it is for."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class WorkLimits(BaseModel):
    """What reading may cost the agent. A unit is about a microsecond of one core.

    The work of a single frame is bounded by its size besides, alike for every reader (decoder/limits.py).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes_per_unit: int = Field(
        default=40,
        ge=1,
        description="Bytes on the wire that pay for a unit, of which some take twice as long as they should: hostile "
        "bytes cost a second of CPU for each 20 MB. An attacker who sends what is dear to read (one byte a packet, "
        "compressed documents of empty values) runs dry",
    )
    unanswered_units: int = Field(
        default=1_000_000,
        ge=1,
        description="What a connection may cause before anything that it sent was answered. Twenty messages of 420 "
        "bytes, each of 1,990,000 compressed values, kept an agent busy for a minute; none had been answered",
    )
    all_unanswered_units: int = Field(
        default=2_000_000,
        ge=1,
        description="The same of all connections without an answer together: an attacker can open any number of them",
    )
    unanswered_units_per_second: int = Field(
        default=200_000,
        ge=0,
        description="What these get back, each and all together, in a second of the capture, so that honest clients "
        "which connect often, and captures of one direction, are read: a fifth of a core. A flood of SYN packets gets "
        "no more",
    )
    refilled_units_per_byte: float = Field(
        default=1.0,
        ge=0,
        description="What all of these, and all that are answered, get back at most by the times of a file, for each "
        "of its bytes: who makes a file chooses its times. Messages of 420 bytes, one a second, took 69 µs a byte. "
        "Where packets do not wait time is real, and gives what it gives",
    )
    answered_units: int = Field(
        default=100_000_000, ge=1, description="What a connection may cause at once whose requests are answered"
    )
    answered_units_per_second: int = Field(
        default=1_000_000,
        ge=0,
        description="What it gets back in a second of the capture: a core. Large replies of small values take four "
        "times what their bytes pay, and all of that is honest: lower both where strangers get answers",
    )
    all_answered_units: int = Field(
        default=200_000_000,
        ge=1,
        description="The same of all of these together. An attacker can have any number of them, each with an answer "
        "to something cheap; those that pay by bytes and answers for what they take are read on",
    )
    all_answered_units_per_second: int = Field(
        default=2_000_000, ge=0, description="What they get back together in a second of the capture: two cores"
    )
    units_per_response: int = Field(
        default=500,
        ge=0,
        description="What it gets back for a request with its response, at most twice what reading the response took: "
        "whoever answers works as well. A hello with its reply takes 400, a small command 150. Were it more, or "
        "could it be saved up, hundreds of cheap answers would pay for compressed documents of empty values. "
        "Where packets do not wait (capture live, --follow, standard input of now) it gets nothing",
    )
    live_answered_units: int = Field(
        default=20_000_000,
        ge=1,
        description="What answered connections may cause at once, each and all together, where packets do not wait "
        "(capture live, --follow, standard input of now): while the agent reads what one of them asks for, packets of "
        "the others are dropped",
    )
    live_answered_units_per_second: int = Field(
        default=400_000,
        ge=0,
        description="What they get back there in a second, so that with what bytes pay a core takes 20 MB/s of the "
        "worst that clients whom a server answers can send. Raise it where clients are trusted, and commands many and "
        "small (MongoDB: 2,000 a second)",
    )

    def when_live(self) -> WorkLimits:
        """The limits where packets do not wait until they are read."""
        at_once, per_second = self.live_answered_units, self.live_answered_units_per_second
        return self.model_copy(
            update={
                "answered_units": min(self.answered_units, at_once),
                "answered_units_per_second": min(self.answered_units_per_second, per_second),
                "all_answered_units": min(self.all_answered_units, at_once),
                "all_answered_units_per_second": min(self.all_answered_units_per_second, per_second),
                "units_per_response": 0,
            }
        )
