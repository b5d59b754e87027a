"""Requests with their own slot, bind address or proxy; unusual hosts."""

import json
from typing import Any

import pytest

from tests.support.access_rules import ROBOTS, Rules, violations
from tests.support.hostile_hosts import HostileHosts, crawl_hosts, pages
from tests.support.own_downloads import own_downloads
from tests.support.recorded_web import html

HOST, IDN = "a.test", "xn--bcher-kva.test"
PICTURES = [f"/picture-{number}" for number in range(4)]
DELAY_S = 0.2


@pytest.mark.parametrize(
    "ways",
    [{"download_slot": "own", "bindaddress": "127.0.0.50"}, {"proxy": "http://127.0.0.40:{port}"}],
)
def test_they_wait_for_the_same_turns_and_open_no_second_connection(tmp_path, ways):
    site = {path: (200, html(f"whale {path}", *PICTURES), {}) for path in ("/", *PICTURES)}

    def settings(hosts: HostileHosts) -> dict[str, Any]:
        meta = {name: value.format(port=hosts.port) for name, value in ways.items()}
        urls = [hosts.url(HOST, f"{path}?own=1") for path in PICTURES]
        return own_downloads(tmp_path / "came", *urls, META=json.dumps(meta), AT_ONCE=1)

    done, hosts = crawl_hosts(
        tmp_path, lambda _: {HOST: pages(site)}, settings=settings, delay_s=DELAY_S
    )
    own = [access for access in hosts.accesses if access.path.endswith("?own=1")]
    assert len(own) == len(PICTURES)
    assert violations(hosts.accesses, Rules(DELAY_S)) == []
    assert set(hosts.most_open.values()) == {1}
    assert len(done.fetched()) == 1 + len(PICTURES)


def test_a_host_in_other_letters_is_asked_by_its_name_in_ascii_after_its_rules(tmp_path):
    def web(port: int) -> dict:
        links = [f"http://{spelling}:{port}/" for spelling in ("bücher.test", "BÜCHER.test", IDN)]
        return {
            HOST: pages({"/": (200, html("whale", *links), {})}),
            IDN: pages({"/": (200, html("whale books"), {})}),
        }

    done, hosts = crawl_hosts(tmp_path, web)
    assert set(done.fetched()) == {hosts.url(HOST), hosts.url(IDN)}
    assert [access.path for access in hosts.accesses if access.host == IDN] == [ROBOTS, "/"]
