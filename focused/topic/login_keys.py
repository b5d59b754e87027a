"""The keys of ``[login]`` in a topic file."""

from __future__ import annotations

from focused.topic.topic_key import COUNT, FLAG, PATH, REQUIRED, TEXT, TopicKey

_SECRET = "`env:NAME` or `keyring:SERVICE/USER`"  # noqa: S105  # a type in the reference

LOGIN_KEYS = (
    TopicKey(
        "hosts",
        "list of host names",
        REQUIRED,
        "The hosts of the login, with a port if it is not the scheme's own "
        '(`"intranet.example:8080"`). No other host gets a credential or a cookie, subdomains '
        "included.",
    ),
    TopicKey(
        "method",
        TEXT,
        '"form"',
        "`form` fills in the login form at `url`; `basic` sends user name and password with every "
        "request (RFC 7617); `bearer` sends `token` (RFC 6750); `cookies` sends the cookies of a "
        "browser session.",
    ),
    TopicKey(
        "url",
        TEXT,
        '""',
        "`form`: the page with the login form, on one of `hosts`. `cookies`: the page that "
        "requests of an ended session are redirected to.",
    ),
    TopicKey(
        "username",
        f"text, {_SECRET}",
        '""',
        "`form`, `basic`: the user name, or where to find it.",
    ),
    TopicKey(
        "password",
        _SECRET,
        '""',
        "`form`, `basic`: where to find the password: the environment variable NAME, or the entry "
        "of USER at SERVICE in the keyring of the operating system. A password in the file is an "
        "error.",
    ),
    TopicKey("token", _SECRET, '""', "`bearer`: where to find the token."),
    TopicKey(
        "cookies",
        PATH,
        "",
        "`cookies`: a file in the Netscape format (`cookies.txt`), which extensions of all "
        "browsers export. Cookies of other hosts in it are ignored.",
    ),
    TopicKey(
        "form",
        TEXT,
        '""',
        "`form`: CSS selector of the form; by default the first form with a password field.",
    ),
    TopicKey(
        "username_field",
        TEXT,
        '""',
        "`form`: name of the field for the user name; by default the last text or e-mail field "
        "before the password field.",
    ),
    TopicKey(
        "password_field",
        TEXT,
        '""',
        "`form`: name of the field for the password; by default the first password field.",
    ),
    TopicKey(
        "fields",
        "texts by field name",
        "{}",
        '`form`: values of further fields: `fields = { remember = "1" }`. Hidden fields keep '
        "their values without it.",
    ),
    TopicKey(
        "expired_text",
        TEXT,
        '""',
        "Text that only pages of an ended session contain, such as `Please sign in`. Status 401 "
        "and 403, and redirects to `url`, are noticed without it.",
    ),
    TopicKey(
        "max_tries",
        COUNT,
        "3",
        "`form`: failed logins in a row, such as timeouts, after which the crawl waits for "
        "`politeness.suspend_s`. A name or password that the site rejects is not tried again.",
    ),
    TopicKey(
        "allow_http",
        FLAG,
        "false",
        "If true, send credentials over unencrypted http, too. An error if `url` is https.",
    ),
)
