"""Logins of a topic: the frozen :class:`Login` and the reader of ``[login]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import ada_url

from focused.topic.value_kinds import (
    Count,
    Flag,
    PathName,
    Text,
    TomlTable,
    ValueKind,
    choice,
    read_section,
    text,
    texts,
)

LOGIN_METHODS = ("form", "basic", "bearer", "cookies")
"""How a login authenticates; the first is the default."""

_SECRET = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|keyring:[^/]+/.+")
_OF_METHODS: Mapping[str, tuple[str, ...]] = {
    "url": ("form", "cookies"),
    "username": ("form", "basic"),
    "password": ("form", "basic"),
    "token": ("bearer",),
    "cookies": ("cookies",),
    "form": ("form",),
    "username_field": ("form",),
    "password_field": ("form",),
    "fields": ("form",),
    "max_tries": ("form",),
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "form": ("url", "username", "password"),
    "basic": ("username", "password"),
    "bearer": ("token",),
    "cookies": ("cookies",),
}
_EXAMPLES = {
    "url": '"https://papers.example.org/login"',
    "username": '"me"',
    "password": '"env:PAPERS_PASSWORD"',
    "token": '"env:PAPERS_TOKEN"',
    "cookies": '"cookies.txt"',
}


def is_secret_reference(text: str) -> bool:
    """Whether a text names an environment variable or an entry of the keyring."""
    return _SECRET.fullmatch(text) is not None


def _read_secret(section: TomlTable, key: str) -> str:
    named = section.text(key)
    if named and not is_secret_reference(named):
        # The value is not shown: it may be the secret.
        section.add_error(
            key, 'must name where the secret is: "env:NAME" or "keyring:SERVICE/USER"'
        )
        return ""
    return named


def _read_fields(section: TomlTable, key: str) -> dict[str, str]:
    value = section.values[key]
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        section.add_error(key, 'must be names and texts: fields = { remember = "1" }')
        return {}
    return {str(name): str(text) for name, text in value.items()}


_SECRET_NAME = "`env:NAME` or `keyring:SERVICE/USER`"  # noqa: S105  # a type in the reference
_SECRET_KIND = ValueKind(
    _SECRET_NAME, {"type": "string", "pattern": "^(env|keyring):"}, _read_secret
)
_FIELDS_KIND = ValueKind(
    "texts by field name",
    {"type": "object", "additionalProperties": {"type": "string"}},
    _read_fields,
)


@dataclass(frozen=True, slots=True)
class Login:
    """How the crawl authenticates at some hosts.

    ``hosts`` are in lower case and punycode, with a port that is not the scheme's default.
    ``password`` and ``token`` are references (``env:NAME``, ``keyring:SERVICE/USER``), never the
    secrets; ``username`` may be one. The other fields are described in
    :mod:`focused.topic.topic_keys`.
    """

    hosts: Annotated[tuple[str, ...], texts("list of host names")]
    method: Annotated[str, choice(*LOGIN_METHODS)] = LOGIN_METHODS[0]
    url: Text = ""
    username: Annotated[str, text(f"text, {_SECRET_NAME}")] = ""
    password: Annotated[str, _SECRET_KIND] = ""
    token: Annotated[str, _SECRET_KIND] = ""
    cookies: PathName | None = None
    form: Text = ""
    username_field: Text = ""
    password_field: Text = ""
    fields: Annotated[Mapping[str, str], _FIELDS_KIND] = field(default_factory=dict, hash=False)
    expired_text: Text = ""
    max_tries: Count = 3
    allow_http: Flag = False

    def covers(self, url: str) -> bool:
        """Whether requests to a normalised URL may carry the credentials."""
        parts = urlsplit(url)
        return parts.netloc in self.hosts and (parts.scheme == "https" or self.allow_http)


def read_logins(head: TomlTable, folder: Path) -> tuple[Login, ...]:
    """Read ``[login]``, or several ``[[login]]``; an empty section is no login.

    ``folder`` is that of the topic file.
    """
    value = head.values.get("login") or []
    tables = value if isinstance(value, list) else [value]
    logins: list[Login] = []
    for number, table in enumerate(tables, start=1):
        name = "login" if len(tables) == 1 else f"login[{number}]"
        if not isinstance(table, dict):
            head.add_error(name, "must be a section: a line [login] with its keys below")
            continue
        login = _read_login(TomlTable(name, table, head.errors), folder)
        for host in login.hosts:
            if any(host in other.hosts for other in logins):
                head.add_error(f"{name}.hosts", f'"{host}" has another login already')
        logins.append(login)
    return tuple(logins)


def _read_login(section: TomlTable, folder: Path) -> Login:
    names = tuple(each.name for each in fields(Login))
    section.report_unknown_keys(names, {"login": names})
    cookies = section.text("cookies")
    login = read_section(
        section,
        Login,
        hosts=_read_hosts(section),
        cookies=folder / cookies if cookies else None,
    )
    _check_keys_of_method(section, login.method)
    if login.cookies is not None and not login.cookies.is_file():
        section.add_error("cookies", f"{login.cookies}: there is no such file")
    if login.url:
        _check_url(section, login)
    return login


def _check_keys_of_method(section: TomlTable, method: str) -> None:
    for key in section.values:
        methods = _OF_METHODS.get(key)
        if methods is not None and method not in methods:
            section.add_error(key, f'has no meaning for method = "{method}"')
    for key in _REQUIRED[method]:
        if key not in section.values:
            section.add_error(
                key, f'required for method = "{method}"; for example {key} = {_EXAMPLES[key]}'
            )


def _check_url(section: TomlTable, login: Login) -> None:
    url = _parse(login.url)
    if url is None or url.protocol not in ("http:", "https:"):
        section.add_error("url", f'"{login.url}" is not an http or https URL')
        return
    is_https = url.protocol == "https:"
    if url.host not in login.hosts:
        section.add_error("url", f'its host "{url.host}" is not in hosts')
    elif not is_https and not login.allow_http:
        section.add_error(
            "url", "sends the password over unencrypted http; if you want that, set allow_http"
        )
    elif is_https and login.allow_http:
        section.add_error("allow_http", "is for logins over http; url is https")


def _read_hosts(section: TomlTable) -> tuple[str, ...]:
    hosts: dict[str, None] = {}
    for entry in section.texts("hosts"):
        url = None if re.search(r"[\s/?#@*\\]", entry) else _parse(f"https://{entry}/")
        if url is None:
            section.add_error("hosts", f'"{entry}" is not a host name, with or without a port')
        else:
            hosts[url.host] = None
    if not section.values.get("hosts"):
        section.add_error("hosts", 'required; for example hosts = ["papers.example.org"]')
    return tuple(hosts)


def _parse(url: str) -> ada_url.URL | None:
    try:
        return ada_url.URL(url)
    except ValueError:
        return None
