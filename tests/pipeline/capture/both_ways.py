"""What the agent lands of connections, read packet by packet and by the block."""

from __future__ import annotations

from pathlib import Path

from decoder.model import Gap
from pipeline.capture.fast_path.block import read_blocks
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent


def landed_lives(path: Path) -> tuple[list[Gap], list[Gap]]:
    """The rows about connections of a capture, of each way of reading it, in the order in which they are landed."""
    one_by_one, blocks = Agent(), BlockAgent(Agent())
    for packet in read_packets(str(path)):
        list(one_by_one.take(packet))
    for block in read_blocks(str(path)):
        list(blocks.take_block(block))
    for agent in (one_by_one, blocks):
        list(agent.finish())
    return one_by_one.lives.take(), blocks.lives.take()
