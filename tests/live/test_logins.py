"""Crawls of sites that need a login, over loopback."""

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.live.login_site import MEMBERS, OTHERS, PAGES, PASSWORD, USER, LoginSite, serve
from tests.live.tls_servers import Certificate
from tests.support.crawling import Finished, crawl, start, write_topic
from tests.support.name_server import at, serve_names

ADDRESSES = {MEMBERS: at("127.0.0.61"), OTHERS: at("127.0.0.62")}
FORM = """
[login]
hosts = ["{host}"]
url = "{url}"
username = "env:WHALE_USER"
password = "env:WHALE_PASSWORD"
allow_http = true
"""
MEMBER_PAGES = {f"/{number}" for number in range(PAGES)}


def set_secrets(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("WHALE_USER", USER)
    patch.setenv("WHALE_PASSWORD", PASSWORD)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    set_secrets(monkeypatch)


ONE_TRY = "suspend_s = 0\nmax_tries = 1"


@contextmanager
def names() -> Iterator[str]:
    with serve_names(ADDRESSES) as server:
        yield server.address


def topic_of(
    folder: Path, site: LoginSite, login: str = FORM, *, politeness: str = "", delay_s: float = 0.0
) -> Path:
    path = write_topic(
        folder,
        site.url(MEMBERS),
        scope="private_addresses = true\ntraps = false",
        politeness=f"fetch_time_factor = 0\n{politeness}",
        delay_s=delay_s,
    )
    host = f"{MEMBERS}:{site.port}"
    login = login.replace("{host}", host).replace("{url}", site.url(MEMBERS, "/login"))
    path.write_text(path.read_text() + login)
    return path


def crawled(
    folder: Path,
    site: LoginSite,
    login: str = FORM,
    *,
    politeness: str = "",
    delay_s: float = 0.0,
    status: int | None = 0,
    **settings: Any,
) -> Finished:
    with names() as server:
        topic = topic_of(folder, site, login, politeness=politeness, delay_s=delay_s)
        done = crawl(topic, "", FOCUSED_DNS_SERVERS=server, **settings)
    assert status in (None, done.status), done.output
    return done


def member_pages(done: Finished) -> set[str]:
    return {f"/{url.split('/', 3)[3]}" for url in done.fetched() if f"//{MEMBERS}:" in url}


def everything_written(folder: Path, output: str = "") -> bytes:
    """All bytes of a crawl's folder, unpacked, and the tables as text, and its output."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    parts = [output.encode(), *(path.read_bytes() for path in files)]
    parts += [gzip.decompress(path.read_bytes()) for path in files if path.suffix == ".gz"]
    for path in files:
        if path.suffix == ".parquet":
            parts.append(pd.read_parquet(path).to_csv().encode())
    return b"\n".join(parts)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, LoginSite, Path]:
    """A crawl of both sites with all its messages logged."""
    folder = tmp_path_factory.mktemp("logins")
    with pytest.MonkeyPatch.context() as patch, serve(LoginSite()) as site:
        set_secrets(patch)
        done = crawled(folder, site, LOG_LEVEL="DEBUG", FOCUSED_LOG_LEVEL="DEBUG")
        return done, site, folder


def test_a_crawl_logs_in_once(visit):
    done, site, _ = visit
    assert member_pages(done) == MEMBER_PAGES
    assert site.logins() == 1


def test_a_link_that_ends_the_session_is_not_followed(visit):
    assert "/logout" not in visit[1].asked(MEMBERS)


@pytest.mark.parametrize(
    "secret", [PASSWORD, "call-me%2Bwhite", USER, "session-of-ishmael", "Set-Cookie", "csrf"]
)
def test_no_secret_is_written(visit, secret):
    """Neither to archive, WARC, log, statistics, settings, state, report nor output."""
    written = everything_written(visit[2], visit[0].output)
    assert b"members only, whale 3" in written and b"Crawled (200)" in written
    assert secret.encode() not in written


def test_credentials_reach_no_other_host_and_no_request_for_robots_txt(visit):
    """The cookie is of a domain that both hosts belong to, and a redirect leads from one there."""
    received = visit[1].received
    others = [each for each in received if each.host == OTHERS]
    assert {"/0", "/from-members"} <= {each.path for each in others}
    for each in (*others, *(each for each in received if each.path == "/robots.txt")):
        assert not {"Cookie", "Authorization"} & set(each.headers)


def test_an_ended_session_is_renewed_within_the_hosts_delay(tmp_path):
    delay_s = 0.15
    with serve(LoginSite(uses=4)) as site:
        done = crawled(tmp_path, site, delay_s=delay_s)
    assert member_pages(done) == MEMBER_PAGES
    assert site.logins() == 3  # for nine pages, of which one is a redirect
    times = [each.at_s for each in site.received if each.host == MEMBERS]
    assert min(later - earlier for earlier, later in pairwise(times)) >= delay_s


def test_pages_that_the_account_may_not_read_end_no_session_for_ever(tmp_path):
    forbidden = frozenset(f"/{number}" for number in range(1, PAGES) if number % 2)
    with serve(LoginSite(forbidden=forbidden)) as site:
        done = crawled(tmp_path, site, FORM + "max_tries = 2\n")
    assert member_pages(done) == MEMBER_PAGES - forbidden
    assert site.logins() == 1 + 2


def test_a_rejected_password_is_sent_once(tmp_path, monkeypatch):
    monkeypatch.setenv("WHALE_PASSWORD", "wrong-password")
    with serve(LoginSite()) as site:
        done = crawled(tmp_path, site, politeness=ONE_TRY, status=None)
    assert site.logins() == 1
    assert "the login at members.whales.test" in done.output and "rejects" in done.output
    assert list(done.pages["failure"].dropna()) == ["login"]
    assert b"wrong-password" not in everything_written(tmp_path, done.output)


def test_a_login_page_that_robots_txt_disallows_is_not_requested(tmp_path):
    with serve(LoginSite(robots="User-agent: *\nDisallow: /login\n")) as site:
        done = crawled(tmp_path, site, politeness=ONE_TRY, status=None)
    assert set(site.asked(MEMBERS)) == {"/robots.txt"}
    assert "robots.txt" in done.output


def test_a_killed_crawl_logs_in_again(tmp_path):
    with serve(LoginSite()) as site, names() as server:
        topic = topic_of(tmp_path, site, delay_s=1.0)
        process = start(topic, "", FOCUSED_DNS_SERVERS=server)
        while len(site.asked(MEMBERS)) < 6:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert site.logins() == 1
        topic = topic_of(tmp_path, site, delay_s=0.2)
        done = crawl(topic, "", FOCUSED_DNS_SERVERS=server)
    assert done.status == 0, done.output
    assert site.logins() == 2
    assert member_pages(done) == MEMBER_PAGES


COOKIES = """
[login]
hosts = ["{host}"]
method = "cookies"
cookies = "cookies.txt"
url = "{url}"
allow_http = true
"""


def test_cookies_of_a_browser_go_to_their_host_until_they_end(tmp_path):
    tmp_path.joinpath("cookies.txt").write_text(
        "# Netscape HTTP Cookie File\n"
        f"#HttpOnly_{MEMBERS}\tFALSE\t/\tFALSE\t0\tsid\tbrowser-session\n"
        f"{OTHERS}\tFALSE\t/\tFALSE\t0\tsid\tother-session\n"
    )
    with serve(LoginSite()) as site:
        site.sessions["browser-session"] = PAGES  # and one for the redirect
        done = crawled(tmp_path, site, COOKIES, politeness=ONE_TRY, status=None)
    assert len(member_pages(done) & MEMBER_PAGES) in (PAGES - 1, PAGES)
    assert not any("Cookie" in each.headers for each in site.received if each.host == OTHERS)
    assert "export the cookies of a new session" in done.output
    (tmp_path / "cookies.txt").unlink()
    written = everything_written(tmp_path, done.output)
    assert b"browser-session" not in written and b"other-session" not in written


CERTIFICATE = Certificate(MEMBERS)
OVER_TLS = FORM.replace("allow_http = true\n", "")


def crawled_over_tls(
    folder: Path, site: LoginSite, certificate: Certificate = CERTIFICATE
) -> Finished:
    with serve(site, certificate.context(folder)):
        return crawled(folder, site, OVER_TLS, politeness=ONE_TRY, status=None)


def test_a_login_over_tls_needs_a_certificate_that_is_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE.path(tmp_path)))
    site = LoginSite()
    done = crawled_over_tls(tmp_path, site)
    assert done.status == 0, done.output
    assert member_pages(done) == MEMBER_PAGES


@pytest.mark.parametrize(
    ("certificate", "is_trusted", "reason"),
    [
        (CERTIFICATE, False, "CERTIFICATE_VERIFY_FAILED"),
        (Certificate(MEMBERS, days=-3), True, "certificate has expired"),
        (Certificate("elsewhere.test"), True, "Hostname mismatch"),
    ],
    ids=["trusted by nobody", "expired", "of another name"],
)
def test_nothing_is_sent_to_a_host_without_a_valid_certificate(
    certificate, is_trusted, reason, tmp_path, monkeypatch
):
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path(tmp_path)))
    site = LoginSite()
    done = crawled_over_tls(tmp_path, site, certificate)
    assert site.logins() == 0
    assert set(site.asked(MEMBERS)) <= {"/robots.txt"}
    assert reason in done.output
