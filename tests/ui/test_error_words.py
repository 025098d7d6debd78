"""Every code of an error and of a problem has its words, whole and on one line."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.errors import (
    AddressError,
    AddressFlaw,
    AllowedValue,
    BackupError,
    BackupFlaw,
    ChatError,
    CommandError,
    CommandRefusal,
    ConfigError,
    CryptoError,
    InputError,
    InputFlaw,
    InviteError,
    LinkFlaw,
    LinkKind,
    LocalProtocolError,
    ProtocolError,
    ProxyFlaw,
    RemoteProtocolError,
    SettingKind,
    SettingsError,
    SettingsFlaw,
    SettingsUnwritableError,
    StorageError,
    StorageFault,
    TransportError,
    TransportFault,
)
from engine.core.history.queries import End
from engine.core.problems import (
    KEEPS_NO_MESSAGES,
    AnswersWrongly,
    CheckedProblem,
    ConnectionReason,
    EntriesRefused,
    MessagesOmitted,
    NoAnswer,
    NodeFailed,
    NodeFault,
    NodeProblem,
    NodeTrouble,
    NoStoreToAsk,
    OffersNo,
    OtherCluster,
    QueryFailed,
    Refuses,
    StoreProblem,
    Unreachable,
)
from engine.events import ConnectionLevel, ConnectionRole, ConnectionView
from ui.connection_words import reason_words
from ui.error_words import error_words
from ui.problem_words import (
    checked_problem_words,
    history_problem_words,
    node_problem_words,
    sentence,
    store_problem_words,
)

ROOT = Path(__file__).parents[2]

ERRORS: list[ChatError] = [
    *map(CommandError, CommandRefusal),
    *(StorageError("not shown", fault) for fault in StorageFault),
    *(TransportError("not shown", fault, "x y") for fault in TransportFault),
    *(BackupError(flaw, "not shown", "8") for flaw in BackupFlaw),
    *(InputError(flaw, given=70_000, limit=65_536) for flaw in InputFlaw),
    *(
        AddressError(flaw, shown="/ip4/x", part="x", allowed=9)
        for flaw in (*AddressFlaw, *ProxyFlaw)
    ),
    *(InviteError(flaw, kind, name="Bob") for flaw, kind in itertools.product(LinkFlaw, LinkKind)),
    *(SettingsError("not shown", flaw, place="x.toml:3", key="port") for flaw in SettingsFlaw),
    *(
        SettingsError("not shown", SettingsFlaw.WRONG_VALUE, allowed=AllowedValue(kind, ("1", "2")))
        for kind in SettingKind
    ),
    SettingsUnwritableError("x.toml", "Read-only file system"),
    ConfigError("not shown"),
    LocalProtocolError("not shown"),
    RemoteProtocolError("frame_odd", "not shown"),
    CryptoError("seal_broken", "not shown"),
    ChatError("not shown"),
    ProtocolError("not shown"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_the_words_of_an_error_are_never_its_text(error: ChatError) -> None:
    words = error_words(error)
    assert " " in words
    assert words != str(error)
    assert "not shown" not in words
    assert not set(words) & set("{}\n")


def _kinds(kind: type[ChatError]) -> Iterator[type[ChatError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds(narrower)


def test_every_kind_of_error_has_words_that_are_not_its_text() -> None:
    """Of those in ``errors.py``: the others are narrower ones, and have the words of these."""
    here = {kind for kind in _kinds(ChatError) if kind.__module__ == ChatError.__module__}
    assert here == {type(error) for error in ERRORS}


def test_no_view_shows_the_text_of_an_error() -> None:
    """A ``PictureError`` is of the window itself, and its text went through ``tr``."""
    shown = re.compile(
        r"except (?!PictureError)[^\n]* as (\w+):(?:(?!\n *except)[\s\S]){0,200}?str\(\1\)"
    )
    views = sorted((ROOT / "ui").rglob("*.py"))
    assert len(views) > 100
    assert [view.name for view in views if shown.search(view.read_text())] == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            InputError(InputFlaw.TEXT_TOO_LONG, given=70_000, limit=65_536),
            "This message has 70000 bytes; at most 65536 can be sent at once.",
        ),
        (
            InputError(InputFlaw.NAME_TOO_LONG, limit=60),
            "This name cannot be used: the name is longer than 60 characters.",
        ),
        (
            AddressError(AddressFlaw.PEER_NOT_NAMED, shown="/ip4/127.0.0.1/tcp/9"),
            'address "/ip4/127.0.0.1/tcp/9": /p2p/ and the peer id are missing',
        ),
        (
            AddressError(AddressFlaw.BAD_PORT, shown="/x", part="y\nz", allowed=65_535),
            'address "/x": "y z" is no port (0 to 65535)',
        ),
        (
            AddressError(ProxyFlaw.NO_PORT, shown="socks5://***@b:1"),
            'proxy "socks5://***@b:1": the port is missing, as in :9050',
        ),
        (
            SettingsError("x", SettingsFlaw.WRONG_VALUE, place="a.toml:3", key="[network] port"),
            'The setting "[network] port" has an impossible value (a.toml:3).',
        ),
        (
            SettingsError(
                "x",
                SettingsFlaw.WRONG_VALUE,
                key="[network] role",
                allowed=AllowedValue(SettingKind.CHOICE, ("auto", "relay", "edge")),
            ),
            (
                'The setting "[network] role" has an impossible value.'
                ' Allowed: "auto", "relay" or "edge".'
            ),
        ),
        (
            SettingsError("x", SettingsFlaw.WRONG_VALUE, key="[network] role"),
            'The setting "[network] role" has an impossible value.',
        ),
        (
            SettingsUnwritableError("settings.toml", "Read-only file system"),
            "settings.toml cannot be written: Read-only file system.",
        ),
        (
            InviteError(LinkFlaw.BLOCKED, LinkKind.CONTACT, name="Bo\nb"),
            "You blocked Bo b. Unblock them first.",
        ),
        (
            InviteError(LinkFlaw.EXPIRED, LinkKind.CONTACT, expired_ms=2**62),
            "This contact link expired on 1 January 9999. Ask for a new one.",
        ),
        (
            TransportError("x", TransportFault.CANNOT_LISTEN, "/ip4/0.0.0.0/tcp/9: in\nuse"),
            "This device cannot listen on /ip4/0.0.0.0/tcp/9: in use.",
        ),
        (
            TransportError("x", TransportFault.WRONG_PEER, "16Uiu2Bob 16Uiu2Eve"),
            "The peer is 16Uiu2Bob, expected was 16Uiu2Eve.",
        ),
        (
            TransportError("x", TransportFault.SYSTEM, "Connection refused").during("to /x"),
            "Connection refused.",
        ),
        (
            StorageError("x", StorageFault.FILE_NOT_WRITTEN, "Permission denied"),
            "The file cannot be written: Permission denied.",
        ),
        (StorageError("x", StorageFault.DISK_FULL), "The disk is full; nothing was saved."),
        (
            StorageError("x", StorageFault.NO_ROOM_TO_CARRY_OVER, "12"),
            (
                "The disk is too full to carry your messages over to this version: for a while that"
                " takes up to 12 MB more. Make room and start again; nothing was changed."
            ),
        ),
    ],
)
def test_parameters_stand_where_they_belong(error: ChatError, words: str) -> None:
    assert error_words(error) == words


STORE_PROBLEMS: list[tuple[StoreProblem, str]] = [
    (QueryFailed(End.FAULTED, "unreachable"), "it cannot be reached"),
    (QueryFailed(End.FAULTED, "frame_odd"), "its answer cannot be read (frame_odd)"),
    (QueryFailed(End.TIMEOUT), "it does not answer in time"),
    (QueryFailed(End.NOTHING_NEW), "its pages bring nothing new and never end"),
    (KEEPS_NO_MESSAGES, "it keeps no messages for others"),
    (MessagesOmitted(1), "it did not have 1 message that others had"),
    (MessagesOmitted(3), "it did not have 3 messages that others had"),
    (EntriesRefused(2), "2 entries of its answer could not be used"),
    (NoAnswer(0.5), "no answer in 0.5 s"),
    (NoAnswer(10), "no answer in 10 s"),
    (Unreachable(TransportFault.SYSTEM, "Connection\nrefused"), "Connection refused"),
    (OtherCluster(43, 42), "it is in cluster 43, this device in cluster 42"),
    (AnswersWrongly("bad"), "it answers wrongly: bad"),
    (Refuses("429 slow down"), "it refuses: 429 slow down"),
]


@pytest.mark.parametrize(("problem", "words"), STORE_PROBLEMS)
def test_what_is_wrong_with_a_store(problem: StoreProblem, words: str) -> None:
    assert store_problem_words(problem) == words


def test_why_a_fetch_waits_or_failed() -> None:
    assert store_problem_words(None) == history_problem_words(None) == ""
    assert history_problem_words(NoStoreToAsk()).startswith("there is no Store to ask; ")
    assert sentence(history_problem_words(QueryFailed(End.TIMEOUT))) == (
        "No Store answered to the end; of the one that came furthest: it does not answer in time."
    )


NODE_PROBLEMS: list[tuple[NodeProblem, str]] = [
    (NodeFailed(NodeFault.CLOSED), "has closed the connection"),
    (NodeFailed(NodeFault.SILENT, "filter"), "does not answer filter requests"),
    (
        NodeFailed(NodeFault.WRONG_ANSWER, "lightpush", "frame_odd"),
        "answers lightpush requests wrongly (frame_odd)",
    ),
    (NodeFailed(NodeFault.SLOW, "lightpush"), "is slow to answer"),
    (
        NodeFailed(NodeFault.MESSAGE_REFUSED, "lightpush", "420", "as\ntold"),
        "refused a message (420 as told)",
    ),
    (NodeFailed(NodeFault.BUSY, "lightpush", "429"), "takes no messages now (429)"),
    (
        NodeFailed(NodeFault.SUBSCRIPTIONS_REFUSED, "filter", said="404 no"),
        "refuses subscriptions (404 no)",
    ),
    (OffersNo(("filter",)), "offers no filter"),
    (OffersNo(("filter", "lightpush")), "offers no filter and no lightpush"),
    (
        Unreachable(TransportFault.SYSTEM, "Connection refused"),
        "cannot be reached (Connection refused)",
    ),
    (
        OtherCluster(43, 42),
        "cannot be used (it is in cluster 43, this device in cluster 42)",
    ),
    (AnswersWrongly("frame_odd"), "cannot be used (it answers wrongly: frame_odd)"),
]


@pytest.mark.parametrize(("problem", "words"), NODE_PROBLEMS)
def test_what_is_wrong_with_a_service_node(problem: NodeProblem, words: str) -> None:
    assert node_problem_words(problem) == words


CHECKED: list[tuple[CheckedProblem, str]] = [
    (OffersNo(("filter", "lightpush")), "it offers no filter and no lightpush"),
    (NoAnswer(0.3), "no answer in 0.3 s"),
    (Unreachable(TransportFault.SYSTEM, "Connection refused"), "Connection refused"),
    (OtherCluster(43, 42), "it is in cluster 43, this device in cluster 42"),
]


@pytest.mark.parametrize(("problem", "words"), CHECKED)
def test_what_a_test_of_a_service_node_found(problem: CheckedProblem, words: str) -> None:
    assert checked_problem_words(problem) == words


@pytest.mark.parametrize("reason", ConnectionReason)
def test_every_reason_for_the_connection_has_words(reason: ConnectionReason) -> None:
    view = ConnectionView(
        level=ConnectionLevel.MINIMAL,
        peers=2,
        reason=reason,
        bytes_in=0,
        bytes_out=0,
        role=ConnectionRole.EDGE,
        trouble=NodeTrouble("192.0.2.1:60000", NodeFailed(NodeFault.SLOW, "lightpush")),
    )
    words = reason_words(view)
    assert words.endswith(": 192.0.2.1:60000 is slow to answer")
    assert not set(words) & set("{}")


def test_every_reason_that_has_words_is_one_that_the_engine_gives() -> None:
    """A name that is changed there would fall back to the general words here."""
    source = "\n".join(path.read_text() for path in (ROOT / "engine").rglob("*.py"))
    words = (ROOT / "ui" / "problem_words.py").read_text()
    reasons = re.findall(r'^    "([a-z_]+)": lambda', words, flags=re.MULTILINE)
    assert len(reasons) > 10
    assert [reason for reason in reasons if f'"{reason}"' not in source] == []
