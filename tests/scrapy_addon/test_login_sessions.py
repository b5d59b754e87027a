"""Sessions: where credentials go, when a session has ended, how a form is filled in."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import keyring
import keyring.backend
import pytest
from scrapy import Request
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.settings import BaseSettings, Settings

from focused.errors import ConfigurationError
from focused.scrapy_addon.addon_settings import set_defaults
from focused.scrapy_addon.driver_features import connect_driver_features
from focused.scrapy_addon.login_gate import (
    LoginError,
    LoginRejectedError,
    ends_session,
    log_in_by_form,
)
from focused.scrapy_addon.login_session import (
    AfterResponse,
    Credentials,
    LoginSession,
    LoginSessions,
    check_login_support,
    resolve_credentials,
)
from focused.scrapy_addon.robots_request import robots_request
from focused.topic.login import Login
from tests.support.simulated import topic

HOST = "a.test"
URL = "https://a.test/login"
SECRETS = Credentials("ishmael", "call-me+whale", "a-token")
FORM = Login((HOST,), url=URL, username="ishmael", password="env:P", expired_text="Please sign in")
PAGE = "https://a.test/page"
FIELDS = "<input name=user><input type=password name=secret>"


def response(url: str = PAGE, status: int = 200, body: str = "", **headers: str) -> HtmlResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HtmlResponse(url, status, named, body.encode(), encoding="utf-8")


def form(inside: str = FIELDS, **attributes: str) -> HtmlResponse:
    given = "".join(f" {key}='{value}'" for key, value in {"method": "post", **attributes}.items())
    return response(URL, body=f"<form{given}>{inside}</form>")


class Site:
    """Answers in order; notes what was sent."""

    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[Request] = []
        self.session: LoginSession | None = None

    async def __call__(self, request: Request) -> Response:
        self.sent.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        answer = answer.replace(url=request.url)
        if self.session is not None:
            self.session.take_cookies(request, answer)
        return answer


WELCOME = response(Set_Cookie="sid=1; Path=/", body="hello")


def log_in(*answers: Response, login: Login = FORM) -> tuple[LoginSession, list[Request]]:
    site, session = Site(*answers), LoginSession(login, SECRETS)
    site.session = session
    asyncio.run(log_in_by_form(session, site))
    return session, site.sent


def headers_for(session: LoginSession, url: str) -> Mapping[str, str]:
    headers = Headers()
    session.add_credentials(Request(url), headers)
    return {name.decode(): values[0].decode() for name, values in headers.items()}


@pytest.mark.parametrize(
    ("url", "covered"),
    [
        (PAGE, True),
        ("https://A.test:443/", True),
        ("http://a.test/page", False),
        ("https://a.test:8443/", False),
        ("https://www.a.test/", False),
        ("https://a.test.evil.test/", False),
        ("https://b.test/?a.test", False),
        ("https://a.test@b.test/", False),
        ("data:text/html,a.test", False),
    ],
)
def test_a_session_covers_exactly_its_hosts_and_https(url, covered):
    sessions = LoginSessions([LoginSession(FORM, SECRETS)])
    assert (sessions.of_url(url) is not None) is covered


@pytest.mark.parametrize(
    ("method", "expected"),
    [("basic", "Basic aXNobWFlbDpjYWxsLW1lK3doYWxl"), ("bearer", "Bearer a-token")],
)
def test_credentials_of_a_header_are_ready_at_once(method, expected):
    session = LoginSession(Login((HOST,), method), SECRETS)
    assert session.is_ready
    assert headers_for(session, PAGE) == {"Authorization": expected}


def test_a_spiders_own_authorization_is_kept():
    headers = Headers({"Authorization": "Own"})
    LoginSession(Login((HOST,), "bearer"), SECRETS).add_credentials(Request(PAGE), headers)
    assert headers["Authorization"] == b"Own"


def test_a_session_shows_no_secret():
    session = LoginSession(Login((HOST,), "bearer"), SECRETS)
    assert "a-token" not in f"{session!r} {SECRETS!r} {vars(session)['credentials']!r}"


def test_cookies_leave_the_response():
    session, answer = LoginSession(FORM, SECRETS), response(Set_Cookie="sid=1", X_Other="2")
    session.take_cookies(Request(PAGE), answer)
    assert set(answer.headers) == {b"X-Other"}
    assert headers_for(session, PAGE) == {"Cookie": "sid=1"}


@pytest.mark.parametrize(
    "request_",
    [robots_request("https://a.test/robots.txt"), Request("http://a.test/page")],
    ids=lambda request: request.url,
)
def test_cookies_leave_all_responses_of_a_host_with_a_login(request_):
    session, answer = LoginSession(FORM, SECRETS), response(Set_Cookie="sid=1", X_Other="2")
    LoginSessions([session]).take_cookies(request_, answer)
    assert set(answer.headers) == {b"X-Other"}
    assert headers_for(session, PAGE) == {}


@pytest.mark.parametrize(
    ("answer", "sign"),
    [
        (response(body="whales"), ""),
        (response(status=404), ""),
        (response(status=401), "status 401"),
        (response(status=403), "status 403"),
        (response(status=302, Location="/login?next=/page"), "redirect to the login page"),
        (response(status=302, Location="https://a.test/login/"), "redirect to the login page"),
        (response(status=302, Location="https://b.test/login"), ""),
        (response(status=302, Location="/elsewhere"), ""),
        (response(body="<p>Please sign in"), "the text of expired_text"),
        (Response(PAGE, body=b"Please sign in"), ""),
    ],
)
def test_what_says_that_a_session_has_ended(answer, sign):
    assert LoginSession(FORM, SECRETS).expiry_sign(answer) == sign


def test_a_page_of_an_earlier_session_is_fetched_again_without_a_login():
    session, _ = log_in(form(), WELCOME)
    assert session.after_response(PAGE, 1, "status 401") is AfterResponse.FETCH_AGAIN
    session.begin()
    assert session.after_response("https://a.test/2", 1, "status 401") is AfterResponse.FETCH_AGAIN
    assert session.is_ready


def test_a_sign_that_stays_in_a_new_session_is_the_pages_own():
    session, _ = log_in(form(), WELCOME)
    for number in range(1, 4):
        page = f"https://a.test/{number}"
        assert session.after_response(page, number, "status 403") is AfterResponse.FETCH_AGAIN
        session.begin()
        assert session.after_response(page, number + 1, "status 403") is AfterResponse.KEEP
    assert session.after_response(PAGE, 4, "status 403") is AfterResponse.KEEP
    assert session.is_ready


def test_a_page_of_ended_browser_cookies_is_no_page(tmp_path):
    session = LoginSession(Login((HOST,), "cookies", cookies=cookie_file(tmp_path)), SECRETS)
    sign = "the text of expired_text"
    assert session.after_response(PAGE, 1, sign) is AfterResponse.REFUSE


def cookie_file(folder: Path, *lines: str) -> Path:
    path = folder / "cookies.txt"
    lines = lines or (".a.test\tTRUE\t/\tTRUE\t0\tsid\tof-browser",)
    path.write_text("# Netscape HTTP Cookie File\n" + "\n".join(lines) + "\n")
    return path


def test_cookies_without_an_end_in_a_browsers_file_are_sent(tmp_path):
    session = LoginSession(Login((HOST,), "cookies", cookies=cookie_file(tmp_path)), SECRETS)
    assert headers_for(session, PAGE) == {"Cookie": "sid=of-browser"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b.test\tFALSE\t/\tFALSE\t0\tsid\tsecret", "no cookie of a.test"),
        ("a.test\tFALSE\t/\tFALSE\t86400\tsid\tsecret", "have expired"),
        ("sid=secret", "not a readable file"),
    ],
)
def test_a_file_without_usable_cookies_is_an_error_that_quotes_none(tmp_path, line, message):
    login = Login((HOST,), "cookies", cookies=cookie_file(tmp_path, line))
    with pytest.raises(ConfigurationError, match=message) as raised:
        LoginSession(login, SECRETS)
    assert "secret" not in str(raised.value)


def test_the_form_is_filled_in_with_its_hidden_fields():
    hidden = "<input type=hidden name=csrf value=x><button name=go value=1></button>"
    session, sent = log_in(form(hidden + FIELDS), WELCOME)
    assert session.is_ready and session.number == 1
    assert [each.method for each in sent] == ["GET", "POST"]
    assert parse_qs(sent[1].body.decode()) == {
        "csrf": ["x"],
        "go": ["1"],
        "user": ["ishmael"],
        "secret": ["call-me+whale"],
    }


REGISTRATION = "<input name=user><input type=password name=new>"


@pytest.mark.parametrize(
    "inside",
    [
        f"{REGISTRATION}<input type=password name=again>",
        REGISTRATION.replace("name=new", "name=new autocomplete=new-password"),
    ],
)
def test_of_several_forms_that_which_registers_nobody_is_filled_in(inside):
    forms = f"<form method=post>{inside}</form><form method=post>{FIELDS}</form>"
    _, sent = log_in(response(URL, body=forms), WELCOME)
    assert parse_qs(sent[1].body.decode()).keys() == {"user", "secret"}


@pytest.mark.parametrize(
    "trap",
    [
        "<input name=website>",
        "<input name=email style='display: none'>",
        "<div hidden><input name=username></div>",
        "<p aria-hidden=true><input name=login></p>",
        "<input name=mail tabindex=-1>",
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_trap_for_programs_stays_empty(trap, is_first):
    user, secret = "<input name=user>", "<input type=password name=secret>"
    inside = f"{trap}{user}{secret}" if is_first else f"{user}{trap}{secret}"
    _, sent = log_in(form(inside), WELCOME)
    filled = parse_qs(sent[1].body.decode())
    assert filled == {"user": ["ishmael"], "secret": ["call-me+whale"]}


def test_a_form_that_a_script_shows_is_filled_in():
    page = response(URL, body=f"<div hidden><form method=post hidden>{FIELDS}</form></div>")
    _, sent = log_in(page, WELCOME)
    assert parse_qs(sent[1].body.decode())["user"] == ["ishmael"]


def test_fields_can_be_named():
    login = Login(
        (HOST,),
        url=URL,
        form="#right",
        username_field="n",
        password_field="p",
        fields={"remember": "1"},
    )
    page = response(URL, body=f"<form>{FIELDS}</form><form id=right method=post></form>")
    _, sent = log_in(page, WELCOME, login=login)
    assert sent[1].body == b"remember=1&n=ishmael&p=call-me%2Bwhale"


def test_a_new_login_forgets_the_cookies_of_the_last():
    session, _ = log_in(form(), WELCOME)
    site = Site(form(), response(Set_Cookie="other=2"))
    site.session = session
    asyncio.run(log_in_by_form(session, site))
    assert headers_for(session, PAGE) == {"Cookie": "other=2"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([response(URL, body="<form><input name=q></form>")], "no form with a password field"),
        ([form(action="https://evil.test/")], "to evil.test, which is not in hosts"),
        ([form(action="http://a.test/login")], "or over http"),
        ([form(method="get")], "in its URL"),
        ([form(enctype="multipart/form-data")], "cannot be sent"),
        ([form("<input type=password>")], "fields of the form are not recognised"),
        ([form(), response(status=307, Location="/other")], "redirects the password"),
        ([form(), response(status=403)], "rejects user name or password"),
        ([form(), response(body="Please sign in")], "rejects user name or password"),
        ([form(), response(status=302, Location="/login"), form()], "form again"),
        ([form(), response(body="hello")], "set no cookie"),
    ],
)
def test_a_login_that_cannot_succeed_is_not_tried_again(answers, message):
    with pytest.raises(LoginRejectedError, match=message) as raised:
        log_in(*answers)
    assert SECRETS.password not in str(raised.value)


@pytest.mark.parametrize("answers", [[response(URL, 503)], [form(), response(status=500)]])
def test_a_login_that_an_outage_prevents_may_be_tried_again(answers):
    with pytest.raises(LoginError) as raised:
        log_in(*answers)
    assert not isinstance(raised.value, LoginRejectedError)


def test_a_redirect_out_of_the_logins_hosts_is_not_followed():
    away = response(status=302, Location="https://b.test/home", Set_Cookie="sid=1")
    session, sent = log_in(form(), away)
    assert session.is_ready and len(sent) == 2


def test_secrets_come_from_the_environment():
    login = Login((HOST,), "basic", username="env:U", password="env:P")
    assert resolve_credentials(login, {"U": "me", "P": "it"}) == Credentials("me", "it")
    with pytest.raises(ConfigurationError, match=r"\[login\] of a.test.*variable P is not set"):
        resolve_credentials(login, {"U": "me"})


class _Keyring(keyring.backend.KeyringBackend):
    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        return "kept" if (service, username) == ("papers", "me/too") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


def test_secrets_come_from_the_keyring():
    before = keyring.get_keyring()
    keyring.set_keyring(_Keyring())
    try:
        login = Login((HOST,), "bearer", token="keyring:papers/me/too")
        assert resolve_credentials(login).token == "kept"
        missing = Login((HOST,), "bearer", token="keyring:papers/you")
        with pytest.raises(ConfigurationError, match="keyring set papers you"):
            resolve_credentials(missing)
    finally:
        keyring.set_keyring(before)


def test_a_token_that_would_break_a_header_is_refused_unseen():
    login = Login((HOST,), "bearer", token="env:T")
    with pytest.raises(ConfigurationError, match="env:T holds characters") as raised:
        resolve_credentials(login, {"T": "evil\r\nCookie: x"})
    assert "evil" not in str(raised.value)


def test_a_crawl_that_cannot_log_in_says_so_at_the_start(tmp_path):
    given = BaseSettings({"DOWNLOAD_HANDLERS": {"https": "my.Handler"}})
    with pytest.raises(ConfigurationError, match="remove http and https from"):
        check_login_support(given, replace(topic(tmp_path, PAGE), login=(FORM,)))


def test_a_replayed_web_needs_no_secrets(tmp_path, monkeypatch):
    monkeypatch.delenv("P", raising=False)
    mine = replace(topic(tmp_path, PAGE), login=(FORM,))
    given = Settings({"FOCUSED_REPLAY": "127.0.0.1:8100"})
    set_defaults(given)
    assert not connect_driver_features(mine, given).gates
    given.set("FOCUSED_REPLAY", None)
    with pytest.raises(ConfigurationError, match="variable P is not set"):
        connect_driver_features(mine, given)


@pytest.mark.parametrize(
    ("path", "ends"),
    [
        ("logout", True),
        ("account/log-out?next=/", True),
        ("index.php?action=logoff", True),
        ("UserLogout.aspx", True),
        ("users/sign_out", True),
        ("blog-official", False),
        ("catalogout", False),
        ("blog/offers", False),
        ("logouts-explained", False),
    ],
)
def test_urls_that_end_a_session_are_known_by_their_names(path, ends):
    assert ends_session(f"https://a.test/{path}") is ends
