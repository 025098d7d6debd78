"""What the text of all kinds of link has in common: what mail does to it, and what is refused."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.channel_link import CHANNEL_FORM, read_channel_link
from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.contacts import CONTACT_PREFIX
from engine.core.errors import InviteError
from engine.core.invite import INVITE_PREFIX, MAX_LINK_CHARACTERS
from engine.crypto.links import parse_contact_link, parse_invite
from tests.codec import test_channel_link as channel
from tests.codec import test_contact_link as contact
from tests.codec import test_invite_link as invite
from ui.error_words import error_words


@dataclass(frozen=True)
class Kind:
    prefix: str
    name: str
    link: str
    parse: Callable[[str], object]
    pack: Callable[[bytes], str]
    """A link whose checksum is right, whatever is in it."""

    def refusal(self, text: str) -> str:
        with pytest.raises(InviteError) as error:
            self.parse(text)
        return error_words(error.value)


CONTACT = Kind(
    prefix=CONTACT_PREFIX,
    name="contact link",
    link=contact.LINK,
    parse=lambda text: parse_contact_link(text, now_ms=contact.NOW),
    pack=contact.pack,
)
INVITATION = Kind(
    prefix=INVITE_PREFIX,
    name="invitation link",
    link=invite.LINK,
    parse=parse_invite,
    pack=invite.pack,
)
CHANNEL = Kind(
    prefix=CHANNEL_PREFIX,
    name="channel link",
    link=channel.LINK,
    parse=read_channel_link,
    pack=CHANNEL_FORM.write,
)
KIND_LIST = [CONTACT, INVITATION, CHANNEL]
EACH = pytest.mark.parametrize("kind", KIND_LIST, ids=lambda kind: kind.name)
KINDS = st.sampled_from(KIND_LIST)


@EACH
@pytest.mark.parametrize(
    "mangle",
    [
        "  {}\r\n".format,
        "<{}>".format,
        "\n<{}>.".format,
        '"{}"'.format,
        "({}),".format,
        lambda link: "\r\n".join(link[at : at + 72] for at in range(0, len(link), 72)),
        lambda link: "\n ".join(link[at : at + 20] for at in range(0, len(link), 20)),
        lambda link: link.replace("causerie:", "Causerie:").replace("join/", "Join/"),
        lambda link: link.replace("causerie:contact/", "CAUSERIE:Contact/"),
        lambda link: "\ufeff" + link[:50] + "\u200b" + link[50:] + "\u00a0",
        "{}=".format,
        "{}==".format,
    ],
)
def test_what_mail_programs_do_is_forgiven(kind: Kind, mangle: Callable[[str], str]) -> None:
    assert kind.parse(mangle(kind.link)) == kind.parse(kind.link)


@EACH
@pytest.mark.parametrize("nothing", ["", "  \n", "<>", "\u200b"])
def test_nothing_is_asked_for_again(kind: Kind, nothing: str) -> None:
    words = kind.refusal(nothing)
    assert words.startswith("Paste a")
    assert words.endswith(f" {kind.name}: it starts with {kind.prefix}")


@EACH
@pytest.mark.parametrize(
    "foreign", ["https://example.org/join/abc", "hello", "causerie:chat/abc", "1"]
)
def test_foreign_links_are_called_so(kind: Kind, foreign: str) -> None:
    words = f"This is not a Causerie {kind.name}: those start with {kind.prefix}"
    assert kind.refusal(foreign) == kind.refusal(f"x{kind.link}") == words


@EACH
def test_every_cut_off_link_is_called_so(kind: Kind) -> None:
    for length in range(1, len(kind.link)):
        words = kind.refusal(kind.link[:length])
        assert "cut off" in words
        assert "Copy the whole link" in words


@EACH
def test_every_changed_character_is_noticed(kind: Kind) -> None:
    for position in range(len(kind.prefix), len(kind.link) - 1):
        for other in ("A" if kind.link[position] != "A" else "B", "é"):
            changed = kind.link[:position] + other + kind.link[position + 1 :]
            assert "cut off or changed" in kind.refusal(changed)


@EACH
def test_bits_of_a_link_that_say_nothing_must_be_zero(kind: Kind) -> None:
    """Two of the three lengths leave some; each changes the last character only."""
    refused = 0
    for length in (1, 2, 3):
        link = kind.pack(bytes(length))
        for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
            if last != link[-1]:
                assert "cut off or changed" in kind.refusal(link[:-1] + last)
                refused += 1
    assert refused == 3 * 63


@EACH
def test_links_that_are_too_long_are_called_so(kind: Kind) -> None:
    assert "at most 2048 characters" in kind.refusal(kind.prefix + "A" * MAX_LINK_CHARACTERS)
    assert "far too long" in kind.refusal(kind.prefix + "A" * 10_000_000)
    assert "far too long" in kind.refusal("A" * 10_000_000)


@given(kind=KINDS, text=st.text(max_size=200), with_prefix=st.booleans())
def test_garbage_is_refused_in_words(kind: Kind, text: str, with_prefix: bool) -> None:
    words = kind.refusal(kind.prefix + text if with_prefix else text)
    assert words.endswith((".", kind.prefix))


@given(kind=KINDS, garbage=st.binary(max_size=300))
def test_checksummed_garbage_is_refused_in_words(kind: Kind, garbage: bytes) -> None:
    assert kind.refusal(kind.pack(garbage)).endswith(".")
