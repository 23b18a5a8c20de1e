from __future__ import annotations

import hashlib
import hmac

import pytest

from decoder.field_hash import MIN_KEY_BYTES, FieldHash

KEY = b"the key of this deployment"


@pytest.mark.parametrize("size", [0, 1, 7, 8, 31, 32, 33, 1000])
def test_the_hash_is_an_hmac_cut_or_filled_to_the_length_of_the_field(size):
    field = b"v" * size
    digest = hmac.new(KEY, field, hashlib.sha256).digest()
    assert FieldHash(KEY)(field) == digest[:size] + bytes(max(0, size - 32))


def test_one_hash_does_not_touch_the_next():
    hashed = FieldHash(KEY)
    assert [hashed(field) for field in (b"alice", b"bob", b"alice")] == [
        FieldHash(KEY)(field) for field in (b"alice", b"bob", b"alice")
    ]


def test_another_key_gives_other_hashes():
    assert FieldHash(KEY)(b"alice") != FieldHash(KEY + b"2")(b"alice")


def test_a_key_that_can_be_guessed_is_refused_without_being_shown():
    with pytest.raises(ValueError, match=f"at least {MIN_KEY_BYTES}") as caught:
        FieldHash(b"s3cret")
    assert "s3cret" not in str(caught.value)


def test_the_key_is_not_shown():
    assert KEY.decode() not in repr(FieldHash(KEY))
    assert not hasattr(FieldHash(KEY), "__dict__")
