"""No connection to a private address by what a spider downloads past the frontier."""

import json

import pytest

from tests.support.crawling import command, finish, write_topic
from tests.support.forked import ForkedCommand
from tests.support.hostile_hosts import pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.own_downloads import own_downloads
from tests.support.recorded_web import html

LOOPBACK_IS_PUBLIC = """
from ipaddress import IPv4Network
from focused.web import host_names
host_names._PRIVATE_V4 = (IPv4Network("127.0.0.2"),)
from scrapy.cmdline import execute
execute()
"""
GOOD, PUBLIC, PRIVATE = "good.test", "127.0.0.1", "127.0.0.2"
SITE = {"/": (200, html("whale"), {}), "/image": (200, b"x", {})}


@pytest.mark.parametrize(
    ("robots", "error"), [("true", "RobotsDeniedError"), ("false", "PrivateAddressError")]
)
def test_what_is_downloaded_past_the_frontier_meets_the_check_of_addresses(tmp_path, robots, error):
    came = tmp_path / "came.json"
    with (
        serve_hosts(lambda _: {GOOD: pages(SITE)}) as served,
        serve_names({GOOD: at(PUBLIC), "private.test": at(PRIVATE)}) as names,
    ):
        topic = write_topic(tmp_path, served.url(GOOD), politeness=f"robots = {robots}")
        image = served.url(GOOD, "/image")
        refused = [served.url(host) for host in ("private.test", PRIVATE, "0x7f.0.0.2")]
        downloads = own_downloads(came, image, *refused, "file:///etc/hostname")
        _, _, _, *arguments = command(topic, "", FOCUSED_DNS_SERVERS=names.address, **downloads)
        done = finish(ForkedCommand(["-c", LOOPBACK_IS_PUBLIC, *arguments]), topic)
    assert done.status == 0, done.output
    assert {access.address for access in served.accesses} == {PUBLIC}
    assert served.url(GOOD) in done.fetched()
    loaded = json.loads(came.read_text())
    assert loaded.pop(image) == "200"
    # The host's robots.txt is asked for first, and meets it, too.
    assert loaded == dict.fromkeys(refused, error) | {"file:///etc/hostname": "IgnoreRequest"}
