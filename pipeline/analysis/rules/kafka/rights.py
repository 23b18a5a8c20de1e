"""Which commands give a right that a broker refused?"""

from __future__ import annotations

from collections.abc import Iterable

REFUSED_RIGHT = "AUTHORIZATION_FAILED"
"""How errors end that are about what a principal may do; the others are of a login."""
_TOOL = "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME"


def commands(
    errors: Iterable[str], *, group: str = "GROUP", topic: str = "TOPIC", transactional_id: str = "TRANSACTIONAL_ID",
    on_topic: str = "Read",
) -> str:  # fmt: skip
    """For people, of each error that is about a right; the names as a shell takes them.

    Args:
        errors: by their names.
        group, topic, transactional_id: what was refused, as far as it is known.
        on_topic: what was to be done with the topic.
    """
    options = {
        "GROUP": f"--operation Read --group {group}",
        "TOPIC": f"--operation {on_topic} --topic {topic}",
        "TRANSACTIONAL_ID": f"--operation Write --transactional-id {transactional_id}",
        "DELEGATION_TOKEN": "--operation Describe --delegation-token TOKEN",
        "CLUSTER": "--operation OPERATION --cluster",
    }
    refused = sorted({error.removesuffix(f"_{REFUSED_RIGHT}") for error in errors if error.endswith(REFUSED_RIGHT)})
    return " and ".join(f"`{_TOOL} {options.get(what, options['CLUSTER'])}`" for what in refused)
