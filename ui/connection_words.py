"""What is said of the connection: how good it is and why, how much went through, where the key is.

Pure functions over read models, so that every sentence can be tested without a window.
"""

from typing import Final, assert_never

from engine.events import ConnectionLevel, ConnectionRole, ConnectionView
from ui.foreign_text import one_line
from ui.translate import tr

_KIB: Final = 1024


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
            return tr("Waiting for network")
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
    """Why it is not as it should be, as a sentence; empty if it is."""
    reason = connection.reason.strip()
    if shown_level(connection) is ConnectionLevel.GOOD or not reason:
        return ""
    return f"{reason[0].upper()}{reason[1:].rstrip('.')}."


def traffic(number: float) -> str:
    """Bytes in the largest unit that keeps the number readable."""
    if not number:
        return tr("{number} kB").format(number=0)
    value = number / _KIB
    for words in (tr("{number} kB"), tr("{number} MB"), tr("{number} GB")):
        if value < _KIB:
            return words.format(number=f"{value:.1f}")
        value /= _KIB
    return tr("{number} TB").format(number=f"{value:.1f}")


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
        case _:
            where = one_line(key_storage, 60)
            return tr("The key to your messages lies here: {where}.").format(where=where)
