from __future__ import annotations

import pytest

from decoder.redact import redact
from tests.decoder.kafka.encode import request
from tests.decoder.kafka.landed import landed


def test_a_frame_of_a_protocol_without_rules_must_not_be_stored():
    with pytest.raises(ValueError, match="unknown protocol 'amqp'"):
        redact(landed(b"AMQP", protocol="amqp"))


def test_a_frame_without_secrets_comes_back_as_it_is():
    frame = landed(request(3, 9, {"topics": [{"name": "orders"}]}))
    assert redact(frame) is frame
