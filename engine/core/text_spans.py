"""Where a message's text holds links, found once when it is stored, never while it is painted.

Only what says ``https://`` or ``mailto:`` itself, plain e-mail addresses, and contact and
invitation links (``causerie:…``, which lead to a preview in the program, never out of it) become
links; everything else, ``http:`` included, stays text.  A link must be what it looks like: no user
name before the host ("https://bank.example@evil.example"), no invisible or direction-changing
character, and a host beyond ASCII is put into its ``xn--`` form, which is what the user is asked to
confirm.
The search is bounded in text and in number.  Nothing here opens anything.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from linkify_it import LinkifyIt

from engine.core.ports import SpanRecord

LINK = "link"
MAX_SPANS = 100
MAX_SCANNED_CHARACTERS = 8 * 1024
"""Links further down in a message stay plain text."""
MAX_TARGET_CHARACTERS = 2048

_HINTS = re.compile(r"https://|@|causerie:", re.IGNORECASE)
_OWN_SCHEME = "causerie:"
_OWN_REST = re.compile(r"^(?:contact|join)/[\w-]+", re.ASCII)
_FORBIDDEN = re.compile(
    r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f"
    r"\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\uffff\U000e0000-\U000e007f]"
)
# Browsers and the codec disagree about these: the link would go where the text does not say.
_DEVIATING = re.compile(r"[ßẞς\u2044\u2215\u29f8\u3002\uff0e\uff0f\uff1a\uff61]")
_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?:\.(?!-)[a-z0-9-]{1,63})+", re.ASCII)
_MAILBOX = re.compile(r"[A-Za-z0-9.!#$%'*+/=_~-]{1,64}", re.ASCII)


def find_spans(text: str) -> tuple[SpanRecord, ...]:
    """Links in ``text``, ascending and disjoint, counted in UTF-16 code units as Qt does."""
    scanned = text[:MAX_SCANNED_CHARACTERS]
    if not _may_hold_links(scanned):
        return ()
    spans: list[SpanRecord] = []
    counted, units = 0, 0
    for match in _linkifier().match(scanned) or ():
        if match.last_index == len(scanned) < len(text):
            break  # it may go on beyond what was scanned
        target = _target(match.schema, match.raw)
        if target is None:
            continue
        units += _utf16_length(scanned[counted : match.index])
        length = _utf16_length(match.raw)
        spans.append(SpanRecord(kind=LINK, start=units, length=length, target=target))
        counted, units = match.last_index, units + length
        if len(spans) == MAX_SPANS:
            break
    return tuple(spans)


def _may_hold_links(text: str) -> bool:
    if not text.isascii():
        return _HINTS.search(text) is not None
    lowered = text.lower()  # Then the same, for a fifth of the time.
    return "@" in lowered or "https://" in lowered or _OWN_SCHEME in lowered


@lru_cache(maxsize=1)
def _linkifier() -> LinkifyIt:
    # http: and ftp: stay known, so that nothing inside such an address is taken for a link.
    return LinkifyIt(
        schemas={_OWN_SCHEME: {"validate": _OWN_REST}},
        options={"fuzzy_link": False, "fuzzy_ip": False, "fuzzy_email": True},
    )


def _target(schema: str, raw: str) -> str | None:
    """What a click would open, None if it had better open nothing."""
    if _FORBIDDEN.search(raw):
        return None
    match schema:
        case "https:":
            target = _https_target(raw)
        case "mailto:":
            target = _mailto_target(raw)
        case "causerie:":
            target = _OWN_SCHEME + raw[len(_OWN_SCHEME) :]  # a phone may have made it a capital
        case _:
            return None
    return target if target is not None and len(target) <= MAX_TARGET_CHARACTERS else None


def _https_target(raw: str) -> str | None:
    try:
        parts = urlsplit(raw)
        port = parts.port
    except ValueError:
        return None
    if "@" in parts.netloc or parts.hostname is None:
        return None
    host = _ascii_host(parts.hostname)
    if host is None:
        return None
    rest = raw[len("https://") + len(parts.netloc) :]
    return f"https://{host}{'' if port is None else f':{port}'}{rest}"


def _mailto_target(raw: str) -> str | None:
    address = raw[len("mailto:") :] if raw.lower().startswith("mailto:") else raw
    mailbox, _, domain = address.rpartition("@")
    host = _ascii_host(domain)
    if host is None or not _MAILBOX.fullmatch(mailbox):
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


def _utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
