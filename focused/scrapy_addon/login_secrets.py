"""Secrets of logins, from environment variables or the keyring of the operating system.

They are added to requests in the download handler (``login_session.py``), below all that logs and
archives. Those of search servers: :mod:`focused.search.server_address`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from focused.errors import ConfigurationError, missing_extra
from focused.topic.login import Login, is_secret_reference


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of one login; its ``repr`` shows none."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def resolve_credentials(login: Login, environment: Mapping[str, str] | None = None) -> Credentials:
    """Return the secrets that the login refers to; ``environment`` defaults to the process's.

    Raises ConfigurationError for a secret that is missing or cannot be sent, and MissingExtraError
    without keyring. No message contains a secret.
    """
    where = os.environ if environment is None else environment
    username = login.username
    if is_secret_reference(username):
        username = _resolve(username, login, where)
    password = _resolve(login.password, login, where) if login.password else ""
    token = _resolve(login.token, login, where) if login.token else ""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(
            f"{_section(login)}: {login.token} holds characters that a bearer token cannot have "
            "(RFC 6750), such as spaces or line breaks"
        )
    if login.method == "basic" and ":" in username:
        raise ConfigurationError(
            f"{_section(login)}: the user name holds a colon, which HTTP Basic cannot send"
        )
    return Credentials(username, password, token)


def _resolve(reference: str, login: Login, environment: Mapping[str, str]) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env":
        secret = environment.get(name, "")
        if not secret:
            raise ConfigurationError(
                f"{_section(login)}: the environment variable {name} is not set"
            )
        return secret
    service, _, user = name.partition("/")
    return _from_keyring(service, user, login)


def _from_keyring(service: str, user: str, login: Login) -> str:
    try:
        import keyring
        import keyring.errors
    except ModuleNotFoundError as error:
        raise missing_extra(error, "[login]") or error from None
    try:
        secret = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise ConfigurationError(
            f"{_section(login)}: the keyring cannot be read: {type(error).__name__}: {error}"
        ) from None
    if not secret:
        raise ConfigurationError(
            f"{_section(login)}: the keyring has no password of {user} at {service}; store it with "
            f"keyring set {service} {user}"
        )
    return secret


def _section(login: Login) -> str:
    return f"[login] of {', '.join(login.hosts)}"
