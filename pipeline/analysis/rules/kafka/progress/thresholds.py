"""What rules about groups that do not get on go by together: they share passes over the data."""

from __future__ import annotations

from pipeline.analysis.rules.kafka.progress.lag_growing import LagGrowing
from pipeline.analysis.rules.kafka.progress.partition_dropped_from_commits import PartitionDroppedFromCommits
from pipeline.analysis.rules.kafka.progress.rewound import Rewound
from pipeline.analysis.rules.kafka.progress.stalled import Stalled
from pipeline.analysis.rules.kafka.progress.stopped import Stopped
from pipeline.analysis.rules.kafka.thresholds import REFUSED_AGAIN_TIMES
from pipeline.analysis.rules.thresholds import Count


class ProgressThresholds(
    LagGrowing.Thresholds,
    Stopped.Thresholds,
    Stalled.Thresholds,
    Rewound.Thresholds,
    PartitionDroppedFromCommits.Thresholds,
):
    """Thresholds of all of them."""


class UnreadThresholds(ProgressThresholds):
    """With the refusals that make a client more than a probe."""

    refused_again_times: Count = REFUSED_AGAIN_TIMES
