"""What reading may cost the agent, by connection and in all; each limit with the attack that it is for.

A unit is about a microsecond of one core. The work of a single frame is bounded by its size besides, alike for every
reader (decoder/limits.py). Users set three of these (:mod:`pipeline.config.work_settings`); the others follow or are
the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """Units that connections may cause.

    Attributes:
        bytes_per_unit: bytes on the wire that pay for a unit, of which some take twice as long as they should: hostile
            bytes cost a second of CPU for each 20 MB.
        unanswered_units: what a connection may cause before anything that it sent was answered. Twenty messages of
            420 bytes, each of 1,990,000 compressed values, kept an agent busy for a minute; none had been answered.
        all_unanswered_units: the same of all connections without an answer: an attacker can open any number of them.
        unanswered_units_per_second: what these get back, each and all together, in a second of the capture, so that
            honest clients which connect often, and captures of one direction, are read. A flood of SYN gets no more.
        refilled_units_per_byte: what all of these, and all that are answered, get back at most by the times of a
            file, for each of its bytes: who makes a file chooses its times. Messages of 420 bytes, one a second, took
            69 µs a byte. Where packets do not wait time is real, and gives what it gives.
        answered_units: what a connection may cause at once whose requests are answered.
        answered_units_per_second: what it gets back in a second of the capture.
        all_answered_units: the same of all of these. An attacker can have any number of them, each with an answer to
            something cheap; those that pay by bytes and answers for what they take are read on.
        all_answered_units_per_second: what they get back in a second of the capture.
        units_per_response: what a connection gets back for a request with its response, at most twice what reading
            the response took: whoever answers works as well. A hello with its reply takes 400, a small command 150.
            Were it more, or could it be saved up, hundreds of cheap answers would pay for compressed documents of
            empty values. Where packets do not wait it gets nothing.
        live_answered_units: what answered connections may cause at once, each and all together, where packets do not
            wait: while the agent reads what one of them asks for, packets of the others are dropped.
        live_answered_units_per_second: what they get back there in a second.
    """

    bytes_per_unit: int = 40
    unanswered_units: int = 1_000_000
    all_unanswered_units: int = 2_000_000
    unanswered_units_per_second: int = 200_000
    refilled_units_per_byte: float = 1.0
    answered_units: int = 100_000_000
    answered_units_per_second: int = 1_000_000
    all_answered_units: int = 200_000_000
    all_answered_units_per_second: int = 2_000_000
    units_per_response: int = 500
    live_answered_units: int = 20_000_000
    live_answered_units_per_second: int = 400_000

    def when_live(self) -> WorkLimits:
        """The limits where packets do not wait until they are read."""
        at_once, per_second = self.live_answered_units, self.live_answered_units_per_second
        return replace(
            self,
            answered_units=min(self.answered_units, at_once),
            answered_units_per_second=min(self.answered_units_per_second, per_second),
            all_answered_units=min(self.all_answered_units, at_once),
            all_answered_units_per_second=min(self.all_answered_units_per_second, per_second),
            units_per_response=0,
        )
