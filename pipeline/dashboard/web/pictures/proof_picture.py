"""What proves a finding or an incident as one chart: for a notebook, or a file that is taken away."""

from __future__ import annotations

import altair as alt

from pipeline.dashboard.queries.overview.losses import Losses
from pipeline.dashboard.queries.overview.proof import ConnectionSeen, Proof
from pipeline.dashboard.queries.progress.groups import GroupSeen
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.queries.progress.shares import SharesSeen
from pipeline.dashboard.web.pictures.group_picture import one_group_chart
from pipeline.dashboard.web.pictures.losses_picture import losses_picture
from pipeline.dashboard.web.pictures.offsets_picture import one_chart
from pipeline.dashboard.web.pictures.picture import below_each_other
from pipeline.dashboard.web.pictures.sequence_picture import sequence_picture
from pipeline.dashboard.web.pictures.share_picture import share_picture


def proof_picture(shown: Proof, *, dark: bool, width: int) -> alt.VConcatChart | alt.LayerChart:
    """The picture of a partition, a share-partition, a group, of losses, or of one connection or two.

    Args:
        shown: what it shows.
        dark: whether it is drawn on a dark background.
        width: pixels of the plot.
    """
    match shown:
        case Offsets():
            return one_chart(shown, dark=dark, width=width)
        case SharesSeen():
            return below_each_other([share_picture(shown, dark=dark)], dark=dark, width=width)
        case GroupSeen():
            return one_group_chart(shown, dark=dark, width=width)
        case Losses():
            return below_each_other([losses_picture(shown, dark=dark)], dark=dark, width=width)
        case ConnectionSeen():
            parts = [
                sequence_picture(one.steps, one.part.ends, one.evidence, dark=dark, can_open=False) for one in shown.all
            ]
            return below_each_other(parts, dark=dark, width=width)
