"""Finds links in a message's text: a part of its markup (``engine.core.markup``).

Links are: ``https://``, ``http://`` and ``mailto:`` addresses, what begins with ``www.`` and opens
by https, plain e-mail addresses, and our own (``causerie:…``, to people, groups and channels with a
shared key), which open a preview inside the program.  Everything else stays text.  A link must be
what it looks like: no user name before the host ("https://bank.example@evil.example") and no
invisible or direction-changing character.  A non-ASCII host is converted to its ``xn--`` form,
which the user is asked to confirm.

The search walks through the text once and never returns to text that a link has taken, so the work
grows linearly with any text.  The number of links is bounded.  Opening links is left to the caller.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

MAX_LINKS = 100
MAX_TARGET_CHARACTERS = 2048

# ftp: is recognised so that nothing inside such an address is taken for a link.
_START: Final = re.compile(
    r"(?P<url>https?://|ftp://)|(?P<www>www\.)|(?P<mailto>mailto:)|(?P<own>causerie:)|(?P<at>@)",
    re.IGNORECASE | re.ASCII,
)
OWN_SCHEME = "causerie:"
_OWN_REST = re.compile(r"(?:contact|join|channel)/[\w-]+", re.ASCII)
_AUTHORITY_END = re.compile(r"[/?#\s<>\"]|\Z")
_HOST_RUN = re.compile(r"[A-Za-z0-9.\-\u0080-\U0010ffff]+")
_PORT = re.compile(r":\d{1,5}(?!\d)", re.ASCII)
_GOES_ON = re.compile(r"_+[^\W_]|:\d", re.ASCII)
_IN_A_PATH = re.compile(r"[()\[\]{}]|[\s<>\"\x00-\x1f\x7f-\x9f]|\Z")
_OPENED_BY: Final = {")": "(", "]": "[", "}": "{"}
_NOT_AT_THE_END: Final = ".,:;!?'([{*_~"
_MAILBOX = re.compile(r"[A-Za-z0-9.$+=_-]{1,64}(?=@)")
_MAILBOX_REVERSED = re.compile(r"[A-Za-z0-9.$+=_-]+")
_MAX_MAILBOX = 64
_BEFORE_AN_ADDRESS = '<>"(\uff5c'
_TOP_LEVEL = re.compile(r"[^\W\d_]{2,63}|xn--[a-z0-9-]{1,59}", re.IGNORECASE)
_FORBIDDEN = re.compile(
    r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f"
    r"\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\uffff\U000e0000-\U000e007f]"
)
# Browsers and the codec disagree about these: the link would lead elsewhere than the text says.
_DEVIATING = re.compile(r"[ßẞς\u2044\u2215\u29f8\u3002\uff0e\uff0f\uff1a\uff61]")
_WWW = re.compile(r"www\.[^.]+\.[^.]", re.IGNORECASE)
_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?:\.(?!-)[a-z0-9-]{1,63})+", re.ASCII)


class Link(Struct, frozen=True):
    """``start`` and ``end`` are indexes into the text; ``target`` is what a click opens."""

    start: int
    end: int
    target: str


def find_links(text: str) -> list[Link]:
    """At most MAX_LINKS, ascending and disjoint."""
    links: list[Link] = []
    if not _may_hold_links(text):
        return links
    for found in LinkSearch(text):
        target = _target(found.kind, text[found.start : found.end])
        if target is not None:
            links.append(Link(found.start, found.end, target))
            if len(links) == MAX_LINKS:
                break
    return links


def _may_hold_links(text: str) -> bool:
    lowered = text.lower()  # Far cheaper than the search; most texts have none.
    return "@" in lowered or "://" in lowered or "www." in lowered or OWN_SCHEME in lowered


class Found(Struct, frozen=True):
    """``kind``: https, http, www, mailto, own, or a scheme whose address holds no link of ours."""

    kind: str
    start: int
    end: int


class LinkSearch:
    """Candidates for links in ``text``, from left to right; the caller judges each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.examined = 0
        """Characters examined so far, counting repeats."""

    def __iter__(self) -> Iterator[Found]:
        at = 0
        while (start := _START.search(self._text, at)) is not None:
            self.examined += start.end() - at
            found = self._found(start, at)
            at = start.end()
            if found is not None and found.end > at:
                at = found.end
                yield found
        self.examined += len(self._text) - at

    def _found(self, start: re.Match[str], passed: int) -> Found | None:
        """``passed``: text before this belongs to another link."""
        if start.lastgroup == "at":
            return self._address(start.start(), passed)
        before = self._text[start.start() - 1 : start.start()]
        if before.isalnum():
            return None
        if start.lastgroup == "url":
            kind = start[0].partition(":")[0].lower()
            return Found(kind, start.start(), self._url_end(start.end()))
        if start.lastgroup == "www":
            end = self._www_end(start.start())
            return None if end is None else Found("www", start.start(), end)
        if start.lastgroup == "mailto":
            mailbox = self._look(_MAILBOX, start.end())
            end = None if mailbox is None else self._host_end(mailbox.end() + 1)
            return None if end is None else Found("mailto", start.start(), end)
        rest = self._look(_OWN_REST, start.end())
        return None if rest is None else Found("own", start.start(), rest.end())

    def _look(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        match = pattern.match(self._text, at)
        if match is not None:
            self.examined += match.end() - at
        return match

    # --- web addresses --------------------------------------------------------------------------

    def _url_end(self, at: int) -> int:
        """``at``: behind the scheme's slashes."""
        authority = self._behind(_AUTHORITY_END, at)
        host = None if "@" in self._text[at:authority] else self._host_end(at)
        end = authority if host is None else host
        port = _PORT.match(self._text, end)
        if port is not None:
            end = port.end()
        return self._path_end(end) if end == authority else end

    def _www_end(self, at: int) -> int | None:
        """``at``: where the host begins.  None if it is no host, or the name before one."""
        end = self._host_end(at)
        if end is None or self._text[end : end + 1] == "@":
            return None
        port = _PORT.match(self._text, end)
        return self._path_end(end if port is None else port.end())

    def _behind(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.search(self._text, at)
        end = len(self._text) if match is None else match.start()
        self.examined += end - at
        return end

    def _host_end(self, at: int) -> int | None:
        """None if there is no host with a valid end."""
        run = self._look(_HOST_RUN, at)
        if run is None:
            return None
        end = run.end()
        if not run[0].isascii():  # punctuation ends a host in any script
            marks = (n for n, c in enumerate(run[0], at) if c > "\x7f" and _is_mark(c))
            end = next(marks, end)
        end = at + len(self._text[at:end].rstrip(".-"))
        if _GOES_ON.match(self._text, end) and not _PORT.match(self._text, end):
            return None
        return end

    def _path_end(self, at: int) -> int:
        """The end: a space, a quotation mark, or a bracket that closes one opened earlier."""
        if self._text[at : at + 1] not in {"/", "?", "#"}:
            return at
        opened = Counter[str]()
        end = at
        for stop in _IN_A_PATH.finditer(self._text, at):
            self.examined += stop.end() - end
            end = stop.start()
            bracket = stop[0]
            if bracket in _OPENED_BY and opened[_OPENED_BY[bracket]]:
                opened[_OPENED_BY[bracket]] -= 1
            elif bracket and bracket in "([{":
                opened[bracket] += 1
            else:
                break
        while end > at + 1 and _ends_a_sentence(self._text[end - 1]):
            self.examined += 1
            end -= 1
        return end

    # --- e-mail addresses -----------------------------------------------------------------------

    def _address(self, sign: int, passed: int) -> Found | None:
        """The e-mail address around the @ at ``sign``."""
        before = self._text[max(passed, sign - _MAX_MAILBOX - 1) : sign]
        mailbox = _MAILBOX_REVERSED.match(before[::-1])
        if mailbox is None or mailbox.end() > _MAX_MAILBOX:
            return None
        self.examined += mailbox.end()
        start = sign - mailbox.end()
        edge = self._text[start - 1 : start]
        if edge and edge not in _BEFORE_AN_ADDRESS and edge.isprintable() and edge != " ":
            return None
        end = self._host_end(sign + 1)
        if end is None or not _TOP_LEVEL.fullmatch(self._text[sign + 1 : end].rpartition(".")[2]):
            return None
        return Found("mailto", start, end)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in {"P", "Z"}


def _ends_a_sentence(character: str) -> bool:
    """Whether the character cannot end a link: it ends a sentence or begins an aside."""
    return character in _NOT_AT_THE_END or (character > "\x7f" and _is_mark(character))


def _target(kind: str, raw: str) -> str | None:
    """What a click opens; None if it is better to open nothing."""
    if _FORBIDDEN.search(raw):
        return None
    match kind:
        case "https" | "http":
            target = _web_target(kind, raw[len(kind) + len("://") :])
        case "www":
            target = _web_target("https", raw) if _WWW.match(raw) else None
        case "mailto":
            target = _mailto_target(raw)
        case "own":
            target = OWN_SCHEME + raw[len(OWN_SCHEME) :]  # a phone may have capitalised it
        case _:
            return None
    return target if target is not None and len(target) <= MAX_TARGET_CHARACTERS else None


def _web_target(scheme: str, address: str) -> str | None:
    try:
        parts = urlsplit(f"//{address}")
        port = parts.port
    except ValueError:
        return None
    if "@" in parts.netloc or parts.hostname is None:
        return None
    host = _ascii_host(parts.hostname)
    if host is None:
        return None
    return f"{scheme}://{host}{'' if port is None else f':{port}'}{address[len(parts.netloc) :]}"


def _mailto_target(raw: str) -> str | None:
    address = raw[len("mailto:") :] if raw.lower().startswith("mailto:") else raw
    mailbox, _, domain = address.rpartition("@")
    host = _ascii_host(domain)
    if host is None:
        return None
    return f"mailto:{mailbox}@{host}"


def _ascii_host(host: str) -> str | None:
    if _DEVIATING.search(host):
        return None
    try:
        ascii_host = host.lower() if host.isascii() else host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    return ascii_host if len(ascii_host) <= 253 and _HOST.fullmatch(ascii_host) else None  # noqa: PLR2004 — of DNS
