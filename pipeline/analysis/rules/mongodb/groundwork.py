"""What the rules of MongoDB share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.groundwork import Ground, Groundwork
from pipeline.analysis.rules.mongodb import commands


class MongoGroundwork(Groundwork):
    """When servers answered last, and symptoms of commands."""

    @classmethod
    def prepare(cls, ground: Ground) -> None:
        """See the class."""
        ends = ground.share("ends of commands", partial(commands.ends, ground.tables), dict[str, int])
        for server, us in ends.items():
            ground.ends[server] = max(us, ground.ends.get(server, 0))

    @classmethod
    def symptoms(cls, ground: Ground) -> Iterable[Shown]:
        """None where there are no commands."""
        if not ground.tables.any("FROM commands"):
            return ()
        return commands.command_symptoms(ground.tables, ground.settings)
