"""Links that are sent to other partitions."""

import msgspec

from focused.frontier.queued_link import QueuedLink, link_key
from focused.rounds.outbox import LinkBatch, LinkMessage, decode_batch


def test_a_batch_is_read_as_it_was_written():
    link = LinkMessage("é" * 8_192, 1.0, 10**6, "é" * 8_192, "😀" * 1_000, (1.0,) * 255, 9, 2**63)
    batch = LinkBatch(3, 5, (link, link))
    assert decode_batch(msgspec.msgpack.encode(batch)) == batch


def test_a_link_arrives_as_it_was_found():
    url = "http://a.test/1"
    link = QueuedLink(
        link_key(url), url, "a.test", 0.0, 0.5, 3, "http://b.test/", "one", (0.5,), 7.0, hops=1
    )
    assert LinkMessage.of(link).link(7.0) == link
