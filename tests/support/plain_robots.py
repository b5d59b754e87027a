"""robots.txt read and matched the slow, plain way: what the real matcher is held against.

Written from RFC 9309 alone: every rule is tried on every path, octet by octet,
in all ways that its stars allow. It reads well-formed lines only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

STAR, END = "star", "end"
ESCAPED = 256  # added to an octet that is not the delimiter it looks like
SAME_ESCAPED_OR_NOT = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!&'()+,:;=@[]/?"
)
HEX = "0123456789ABCDEFabcdef"
Token = int | str


def allowed(text: str, name: str, path: str) -> bool:
    """Whether the robot ``name`` may ask for a path with its query."""
    if path == "/robots.txt":
        return True
    best = max(
        (
            (sum(map(octets, pattern)), allow)
            for allow, pattern in rules_for(text, name)
            if any(matches(pattern, each) for each in readings(path))
        ),
        default=(0, True),
    )
    return best[1]


def rules_for(text: str, name: str) -> Sequence[tuple[bool, list[Token]]]:
    """The rules of all groups that name the robot, else of all that name ``*``."""
    by_agent: dict[str, list[tuple[bool, list[Token]]]] = {}
    named: list[str] = []
    in_rules = False
    for line in text.split("\n"):
        field, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if field.lower() == "user-agent":
            named = [] if in_rules else named
            in_rules = False
            named.append(value.lower())
            by_agent.setdefault(value.lower(), [])
        elif field.lower() in ("allow", "disallow"):
            in_rules = True
            for each in named if value else ():
                by_agent[each].append((field.lower() == "allow", pattern_of(value)))
    return by_agent.get(name.lower(), by_agent.get("*", []))


def pattern_of(value: str) -> list[Token]:
    """The octets of a rule, with its special characters."""
    tokens: list[Token] = [
        STAR if (char, escaped) == ("*", False) else octet
        for char, octet, escaped in spelled(value.removesuffix("$"))
    ]
    return [*tokens, END] if value.endswith("$") else tokens


def readings(path: str) -> Iterator[list[int]]:
    """The octets of a path: a slash in its query is one escaped or not, but one way throughout."""
    if not path.partition("#")[0].partition("?")[0]:
        path = f"/{path}"
    octets = [octet for _, octet, _ in spelled(path.partition("#")[0])]
    yield octets
    if ord("?") in octets:
        start = octets.index(ord("?")) + 1
        yield octets[:start] + [
            octet + ESCAPED if octet in b"/?" else octet for octet in octets[start:]
        ]


def spelled(text: str) -> Iterator[tuple[str, int, bool]]:
    """Each octet with the character it begins with, and whether it was escaped."""
    in_query = False
    at = 0
    while at < len(text):
        digits = text[at + 1 : at + 3]
        if text[at] == "%" and len(digits) == 2 and all(digit in HEX for digit in digits):
            octet = int(digits, 16)
            yield text[at], octet + (ESCAPED if octet in b"/?" and not in_query else 0), True
            at += 3
            continue
        in_query = in_query or text[at] == "?"
        for octet in text[at].encode():
            yield text[at], octet, False
        at += 1


def octets(token: Token) -> int:
    """How much of a rule's length a token is: 3 for what has to be escaped."""
    if isinstance(token, str):
        return 1
    return 1 if token in SAME_ESCAPED_OR_NOT else 3


def matches(pattern: Sequence[Token], path: Sequence[int]) -> bool:
    """Whether the pattern matches the beginning of a path; all places are tried at once."""
    places = {0}
    for token in pattern:
        if token == STAR:
            places = set(range(min(places), len(path) + 1))
        elif token == END:
            places &= {len(path)}
        else:
            places = {at + 1 for at in places if at < len(path) and path[at] == token}
        if not places:
            return False
    return True
