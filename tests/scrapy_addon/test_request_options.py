"""Requests with their own slot, bind address or proxy; unusual hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.access_rules import ROBOTS, Rules, violations
from tests.support.crawling import write_topic
from tests.support.hostile_hosts import pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.recorded_web import html
from tests.support.warm import crawl_warm

HOST, IDN = "a.test", "xn--bcher-kva.test"
PICTURES = [f"/picture-{number}" for number in range(4)]
DELAY_S = 0.2
PRIVATE_ALLOWED = "private_addresses = true"


@pytest.mark.parametrize(
    "ways",
    [{"download_slot": "own", "bindaddress": "127.0.0.50"}, {"proxy": "http://127.0.0.40:{port}"}],
)
def test_they_wait_for_the_same_turns_and_open_no_second_connection(
    tmp_path: Path, ways: dict[str, str]
) -> None:
    site = {path: (200, html(f"whale {path}", *PICTURES), {}) for path in ("/", *PICTURES)}
    with (
        serve_hosts(lambda _: {HOST: pages(site)}) as hosts,
        serve_names({HOST: at("127.0.0.41")}) as names,
    ):
        topic = write_topic(tmp_path, hosts.url(HOST), delay_s=DELAY_S, scope=PRIVATE_ALLOWED)
        meta = {name: value.format(port=hosts.port) for name, value in ways.items()}
        done = crawl_warm(
            topic,
            "",
            FOCUSED_DNS_SERVERS=names.address,
            EXTENSIONS=json.dumps({"tests.support.own_downloads.OwnDownloads": 1}),
            OWN_DOWNLOADS=",".join(hosts.url(HOST, f"{path}?own=1") for path in PICTURES),
            OWN_DOWNLOADS_META=json.dumps(meta),
            OWN_DOWNLOADS_AT_ONCE=1,
            OWN_DOWNLOADS_FILE=tmp_path / "came.json",
        )
    assert done.status == 0, done.output
    own = [access for access in hosts.accesses if access.path.endswith("?own=1")]
    assert len(own) == len(PICTURES)
    assert violations(hosts.accesses, Rules(DELAY_S)) == []
    assert set(hosts.most_open.values()) == {1}
    assert len(done.fetched()) == 1 + len(PICTURES)


def test_a_host_in_other_letters_is_asked_by_its_name_in_ascii_after_its_rules(
    tmp_path: Path,
) -> None:
    def web(port: int) -> dict:
        links = [f"http://{spelling}:{port}/" for spelling in ("bücher.test", "BÜCHER.test", IDN)]
        return {
            HOST: pages({"/": (200, html("whale", *links), {})}),
            IDN: pages({"/": (200, html("whale books"), {})}),
        }

    zone = {HOST: at("127.0.0.41"), IDN: at("127.0.0.42")}
    with serve_hosts(web) as hosts, serve_names(zone) as names:
        topic = write_topic(tmp_path, hosts.url(HOST), scope=PRIVATE_ALLOWED)
        done = crawl_warm(topic, "", FOCUSED_DNS_SERVERS=names.address)
    assert set(done.fetched()) == {hosts.url(HOST), hosts.url(IDN)}
    assert [access.path for access in hosts.accesses if access.host == IDN] == [ROBOTS, "/"]
