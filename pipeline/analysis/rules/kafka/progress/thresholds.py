"""What rules about groups that do not get on go by together: they share passes over the data."""

from __future__ import annotations

from pipeline.analysis.rules.kafka.progress.lag_growing import LagGrowing
from pipeline.analysis.rules.kafka.progress.partition_dropped_from_commits import PartitionDroppedFromCommits
from pipeline.analysis.rules.kafka.progress.rewound import Rewound
from pipeline.analysis.rules.kafka.progress.stalled import Stalled
from pipeline.analysis.rules.kafka.progress.stopped import Stopped


class ProgressThresholds(
    LagGrowing.Thresholds,
    Stopped.Thresholds,
    Stalled.Thresholds,
    Rewound.Thresholds,
    PartitionDroppedFromCommits.Thresholds,
):
    """Thresholds of all of them."""
