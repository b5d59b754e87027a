"""Log in by a form: fetch its page, fill it in, submit it, follow the redirects."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response, TextResponse

from focused.scrapy_addon.login_session import LOGIN, LOGIN_KEY, LoginSession
from focused.web.urls import normalize_url

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

Download = Callable[[Request], Awaitable[Response]]

MAX_LOGIN_REDIRECTS = 10

_SECRET_INPUT = 'input[translate(@type, "PASWORD", "pasword") = "password"]'  # noqa: S105  # XPath
_NAME_TYPES = frozenset({"", "text", "email"})
_USER_NAME = re.compile(
    r"user|login|log_?on|e?-?mail|account|nick|(?:^|\W)(?:name|id|uid)(?:$|\W)", re.I
)
# Fields that people do not see catch programs.
_HIDDEN = """ancestor-or-self::*[ancestor::form][
    @hidden or @aria-hidden = "true" or self::input[@tabindex = "-1"]
    or contains(translate(@style, " ", ""), "display:none")
    or contains(translate(@style, " ", ""), "visibility:hidden")]"""


class LoginError(Exception):
    """A login failed and may be tried again; the message holds no secret."""


class LoginRejectedError(LoginError):
    """The site rejects the login, or its form is unusable: trying again cannot help."""


async def log_in_by_form(session: LoginSession, download: Download) -> None:
    """Log in; the session's cookies are those of the responses.

    Raises LoginError, LoginRejectedError and the exceptions of ``download``.
    """
    session.reset()
    page = await _follow(session, _request(session.login.url), download)
    if page.status >= 400:
        raise LoginError(f"the login page answers with status {page.status}")
    submission = _fill_in(session, page)
    after = await _follow(session, submission, download)
    if after.status >= 500 or after.status == 429:
        raise LoginError(f"the form was answered with status {after.status}")
    if after.status >= 400 or session.shows_expiry_text(after):
        raise LoginRejectedError("the site rejects user name or password")
    if session.is_login_page(after.url) and _find_form(session, after) is not None:
        raise LoginRejectedError("the site shows the login form again: it rejects the login")
    if not session.has_cookies:
        raise LoginRejectedError("the site set no cookie after the login")
    session.begin()


def _request(url: str) -> Request:
    return Request(url, meta=_meta(), dont_filter=True)


def _meta() -> dict[str, object]:
    return {
        LOGIN_KEY: LOGIN,
        "dont_merge_cookies": True,
        "dont_cache": True,
        "handle_httpstatus_all": True,
    }


async def _follow(session: LoginSession, request: Request, download: Download) -> Response:
    """Send a request and follow redirects within the session's hosts."""
    for _ in range(MAX_LOGIN_REDIRECTS + 1):
        response = await download(request)
        location = (response.headers.get("Location") or b"").decode("latin-1")
        if response.status not in (301, 302, 303, 307, 308) or not location:
            return response
        if request.method == "POST" and response.status in (307, 308):
            raise LoginRejectedError("the form redirects the password to another URL")
        target = normalize_url(location, response.url)
        if target is None or not session.login.covers(target):
            return response
        request = _request(target)
    raise LoginError("the login redirects without end")


def _fill_in(session: LoginSession, page: Response) -> Request:
    """Return the request that submits the form. Raises LoginRejectedError if it must not be."""
    from form2request import form2request  # an extra

    form = _find_form(session, page)
    if form is None:
        raise LoginRejectedError(f"{session.login.url} has no form with a password field")
    login = session.login
    password_field = login.password_field or _name_of(form.xpath(f".//{_SECRET_INPUT}[@name]"))
    username_field = login.username_field or _username_field(form)
    if not password_field or not username_field:
        raise LoginRejectedError(
            "the fields of the form are not recognised; set username_field and password_field"
        )
    data = {
        **login.fields,
        username_field: session.credentials.username,
        password_field: session.credentials.password,
    }
    try:
        filled = form2request(form, data)
    except (ValueError, NotImplementedError) as error:
        raise LoginRejectedError(f"the form cannot be sent: {type(error).__name__}") from None
    url = normalize_url(filled.url)
    if filled.method != "POST":
        raise LoginRejectedError("the form would send the password in its URL (method GET)")
    if url is None or not login.covers(url):
        raise LoginRejectedError(
            f"the form would send the password to {urlsplit(filled.url).netloc}, which is not in "
            "hosts, or over http"
        )
    return Request(
        url,
        method="POST",
        headers=dict(filled.headers),
        body=filled.body,
        meta=_meta(),
        dont_filter=True,
    )


def _find_form(session: LoginSession, page: Response) -> Selector | None:
    if not isinstance(page, TextResponse):
        return None
    try:
        if session.login.form:
            found = page.css(session.login.form).xpath("self::form")
        else:
            found = page.xpath(f"//form[.//{_SECRET_INPUT}]")
    except ValueError:  # a page without text, or an invalid selector
        return None
    return min(found, key=_is_for_new_passwords, default=None)


def _is_for_new_passwords(form: Selector) -> bool:
    """Whether a form registers somebody or changes a password, instead of logging in."""
    secrets = form.xpath(f".//{_SECRET_INPUT}")
    return len(secrets) != 1 or secrets[0].attrib.get("autocomplete", "").lower() == "new-password"


def _username_field(form: Selector) -> str:
    """Return the name of the field before the password that is likeliest for the user's name."""
    found, best = "", (False, False, False)
    for field in form.xpath(".//input"):
        attributes = field.attrib
        kind = attributes.get("type", "").strip().lower()
        if kind == "password":
            break
        if kind in _NAME_TYPES and attributes.get("name"):
            completion = attributes.get("autocomplete", "").lower().split()
            rating = (
                not field.xpath(_HIDDEN),
                bool({"username", "email"} & set(completion)),
                bool(_USER_NAME.search(f"{attributes['name']} {attributes.get('id', '')}")),
            )
            if rating >= best:
                found, best = attributes["name"], rating
    return found


def _name_of(inputs: SelectorList[Selector]) -> str:
    """Return the name of the first input, or an empty text."""
    return str(inputs[0].attrib["name"]) if inputs else ""
