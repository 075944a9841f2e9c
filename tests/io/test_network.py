"""What the hub's client raises of its own is told like any other failure to read."""

import pytest

from poolembed.errors import InputError
from poolembed.io.compression import opened_bytes
from poolembed.io.remote import network_errors

# What huggingface_hub speaks HTTP with; releases before 2 have another.
client = pytest.importorskip("httpx2", reason="huggingface_hub of another release, without httpx2")


def unreachable():
    raise client.ConnectError("Name or service not known")


def test_a_failing_network_is_an_input_error():
    opened = opened_bytes("hf://a/b.jsonl", unreachable)
    with pytest.raises(InputError, match=r"hf://a/b\.jsonl: cannot be read: Name or service not known"):
        opened.__enter__()


def test_failures_of_the_operating_system_are_among_them():
    assert OSError in network_errors()
    assert client.HTTPError in network_errors()
