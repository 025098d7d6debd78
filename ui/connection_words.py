"""Sentences about the connection: how good it is and why, its traffic, where the key is.

Pure functions over read models, so that every sentence can be tested without a window.
"""

from typing import Final, Literal, TypeAlias, assert_never

from engine.core.problems import ConnectionReason
from engine.events import ConnectionLevel, ConnectionRole, ConnectionView
from ui.foreign_text import one_line
from ui.problem_words import node_problem_words, sentence
from ui.regional import decimal
from ui.translate import tr

_KIB: Final = 1024
_LARGEST_NUMBER: Final = 1000
_EdgeReason: TypeAlias = Literal[
    ConnectionReason.NO_SERVICE_NODE,
    ConnectionReason.NO_NODE_ANSWERS,
    ConnectionReason.NO_NODE_SERVES,
    ConnectionReason.ONLY_SENDING,
    ConnectionReason.ONLY_RECEIVING,
    ConnectionReason.ONE_SERVICE_NODE,
]


def shown_level(connection: ConnectionView) -> ConnectionLevel:
    """One peer is all there is in a group of two: nothing is wrong with that."""
    alone = connection.level is ConnectionLevel.MINIMAL and connection.peers == 1
    if alone and connection.role is ConnectionRole.RELAY:
        return ConnectionLevel.GOOD
    return connection.level


def connection_word(connection: ConnectionView) -> str:
    match shown_level(connection):
        case ConnectionLevel.GOOD:
            return tr("Online")
        case ConnectionLevel.MINIMAL:
            is_edge = connection.role is ConnectionRole.EDGE
            return tr("Limited") if is_edge else tr("Connecting")
        case ConnectionLevel.OFFLINE:
            begun = connection.reason is not ConnectionReason.NOT_STARTED
            return tr("Waiting for network") if begun else tr("Not connected yet")
        case _:
            assert_never(connection.level)


def connection_line(connection: ConnectionView) -> str:
    word = connection_word(connection)
    if connection.level is ConnectionLevel.OFFLINE:
        return word
    if connection.role is ConnectionRole.EDGE:
        line = tr("{word}, %n service nodes", "{word}, %n service node", connection.peers)
    else:
        line = tr("{word}, %n peers", "{word}, %n peer", connection.peers)
    return line.format(word=word)


def connection_reason(connection: ConnectionView) -> str:
    """Why the connection is poor, as a sentence; empty if it is good, or before the first start."""
    is_good = shown_level(connection) is ConnectionLevel.GOOD
    if is_good or connection.reason is ConnectionReason.NOT_STARTED:
        return ""
    return sentence(reason_words(connection))


def reason_words(connection: ConnectionView) -> str:
    """The reason for its level, without capital and full stop."""
    words = _reason(connection)
    if connection.trouble is None:
        return words
    node, problem = connection.trouble.node, node_problem_words(connection.trouble.problem)
    return tr("{reason}: {node} {problem}").format(reason=words, node=node, problem=problem)


def _reason(connection: ConnectionView) -> str:
    match connection.reason:
        case ConnectionReason.NOT_STARTED:
            words = tr("not started")
        case ConnectionReason.NOBODY_CONNECTED:
            words = tr("nobody is connected")
        case ConnectionReason.ONE_PEER:
            words = tr("connected to one peer: everything depends on it")
        case ConnectionReason.NO_MESH:
            words = tr("connected to {number} peers, none passes messages on yet")
        case ConnectionReason.PEERS:
            words = tr("connected to {number} peers")
        case ConnectionReason.SERVICE_NODES:
            words = tr("connected through {number} service nodes")
        case _:
            words = _edge_reason(connection.reason)
    return words.format(number=connection.peers)


def _edge_reason(reason: _EdgeReason) -> str:
    match reason:
        case ConnectionReason.NO_SERVICE_NODE:
            words = tr("no service node is set, and without relaying one is needed")
        case ConnectionReason.NO_NODE_ANSWERS:
            words = tr("no service node answers")
        case ConnectionReason.NO_NODE_SERVES:
            words = tr("no service node serves this device")
        case ConnectionReason.ONLY_SENDING:
            words = tr("messages can be sent but not received")
        case ConnectionReason.ONLY_RECEIVING:
            words = tr("messages can be received but not sent")
        case ConnectionReason.ONE_SERVICE_NODE:
            words = tr("everything depends on one service node")
        case _:
            assert_never(reason)
    return words


def traffic(number: float) -> str:
    """Bytes in the largest unit that keeps the number readable."""
    if not number:
        return tr("{number} kB").format(number=0)
    value = number / _KIB
    for words in (tr("{number} kB"), tr("{number} MB"), tr("{number} GB")):
        if round(value, 1) < _LARGEST_NUMBER:
            return words.format(number=decimal(value))
        value /= _KIB
    return tr("{number} TB").format(number=decimal(value))


def key_words(key_storage: str) -> str:
    """Where the database's key lies, and what that means."""
    match key_storage:
        case "system keyring":
            return tr("The key to your messages lies in the system keyring.")
        case "key file":
            return tr(
                "The key to your messages lies in a file beside them:"
                " keep the profile's folder to yourself."
            )
        case "passphrase":
            return tr("The key to your messages opens with your passphrase.")
        case _:
            where = one_line(key_storage, 60)
            return tr("The key to your messages lies here: {where}.").format(where=where)
