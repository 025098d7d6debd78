"""One conversation as a folder that needs no Causerie: ``chat.html``, ``chat.json`` and its files.

docs/export.md describes both.  The page holds no script and asks nobody for anything, whatever a
message or a name says: all text is escaped, and a policy in the page forbids the rest.  Everything
is written beside the place where it will lie and moved there at the end, so that what was stopped
or failed leaves nothing behind.
"""

import asyncio
import errno
import html
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import quote

from msgspec import Struct

from engine.api import ChatEngine
from engine.core.errors import CommandError, CommandRefusal, StorageError, StorageFault
from engine.core.file_names import clean_file_name
from engine.core.ids import MessageId, Position
from engine.events import ConversationView, MessageKind, MessageView, QuoteView
from ui.conversation_words import forwarded_words, kind_words, quote_words, sender_words
from ui.file_words import is_here
from ui.foreign_text import one_line
from ui.times import moment, moment_words
from ui.translate import tr

FORMAT: Final = "causerie-chat"
VERSION: Final = 1
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Shown in the page; whatever else is said to be one lies beside it."""
_BEFORE_ALL: Final = Position(lamport_timestamp=-1, message_id=MessageId(""))
POLICY: Final = "default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'"
STYLE: Final = """
body{font:15px/1.45 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#14201f;
background:#fff} article{margin:.8em 0;overflow-wrap:anywhere} article.own{margin-left:4em}
header{color:#465654;font-size:13px} header b{color:#14201f} blockquote,.said{margin:.2em 0;
white-space:pre-wrap} blockquote{border-left:3px solid #c6d1ce;padding-left:.6em;color:#465654}
img{max-width:100%;max-height:30em} footer{color:#5c6b68;font-size:13px}
@media(prefers-color-scheme:dark){body,header b{color:#e6eeec} body{background:#0e1515}
header,blockquote,footer{color:#aebcb9}}
"""

Progress = Callable[[int, int], None]
"""How many messages are written, of how many."""


class Exported(Struct, frozen=True):
    folder: Path
    messages: int
    files: int
    not_here: int
    """Files whose bytes are not on this device."""


class ChatExport:
    def __init__(self, engine: ChatEngine, conversation: ConversationView) -> None:
        self._engine = engine
        self._conversation = conversation
        self._files = self._not_here = 0

    async def write(self, place: Path, progress: Progress) -> Exported:
        """Into a folder of its own in ``place``.  Raises StorageError; then nothing is left."""
        self._files = self._not_here = 0
        try:
            folder, partial = _begun(place, self._conversation)
        except OSError as error:
            raise _not_written(error, place) from error
        try:
            (partial / "files").mkdir()
            written = await self._write_all(partial, progress)
            partial.rename(folder)  # Not in a thread, where it would go on once it is cancelled.
        except BaseException as error:  # Cancelled, too.
            await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
            if isinstance(error, OSError) or (isinstance(error, StorageError) and _is_away(place)):
                raise _not_written(error, place) from error
            raise
        return Exported(folder, written, self._files, self._not_here)

    async def _write_all(self, folder: Path, progress: Progress) -> int:
        with (
            (folder / "chat.html").open("w", encoding="utf-8", newline="\n") as page,
            (folder / "chat.json").open("w", encoding="utf-8", newline="\n") as data,
        ):
            page.write(_page_head(self._conversation))
            data.write(_json_head(self._conversation))
            written, after, more = 0, _BEFORE_ALL, True
            while more:
                rows = await self._engine.timeline.page_after(
                    self._conversation.conversation_id, after
                )
                for message in rows.messages:
                    path = await self._take_file(message, folder)
                    page.write(message_html(message, path))
                    data.write(",\n" if written else "\n")
                    data.write(json.dumps(message_data(message, path), ensure_ascii=False))
                    written += 1
                progress(written, max(rows.total, written))
                more = rows.has_newer and bool(rows.messages)
                after = rows.messages[-1].position if rows.messages else after
            data.write("\n]}\n")
            page.write("</body></html>\n")
            await asyncio.to_thread(_finish, page, data)
        return written

    async def _take_file(self, message: MessageView, folder: Path) -> str:
        """Its path in the folder; "" if there is none, or not all of it is here."""
        file = message.file
        if file is None:
            return ""
        if not is_here(file):
            self._not_here += 1
            return ""
        path = f"files/{self._files + 1:04d}-{file.name}"
        copying = asyncio.ensure_future(
            self._engine.files.save_as(
                message.conversation_id, message.message_id, str(folder / path)
            )
        )
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            await asyncio.wait([copying])  # Or it would write into what is being removed.
            raise
        except (CommandError, StorageError) as error:
            if not _is_gone(error):
                raise
            self._not_here += 1
            return ""
        self._files += 1
        return path


def _is_gone(error: CommandError | StorageError) -> bool:
    """The file itself, which the row did not know yet; the place to write to may be good."""
    if isinstance(error, StorageError):
        return error.fault is StorageFault.DAMAGED
    return error.refusal in {CommandRefusal.NOT_COMPLETE, CommandRefusal.NO_FILE}


def _finish(*files: TextIO) -> None:
    """A disk that is full says so here at the latest."""
    for file in files:
        file.flush()


def _is_away(place: Path) -> bool:
    return not os.path.lexists(place)


def _not_written(error: OSError | StorageError, place: Path) -> StorageError:
    if isinstance(error, StorageError) or _is_away(place):
        return StorageError("export", StorageFault.FOLDER_GONE, str(place))
    reason = error.strerror or type(error).__name__
    return StorageError("export", StorageFault.FILE_NOT_WRITTEN, reason)


def _begun(place: Path, conversation: ConversationView) -> tuple[Path, Path]:
    """Named after the conversation, whatever its name holds, and the folder to write in until then.

    The second is made here, and by nobody else.
    """
    shown = re.sub(r"[/\\]", "_", one_line(conversation.name, 60))
    name = clean_file_name(shown) or "chat"
    if not place.is_dir():  # It may be on a stick, and is not made anew elsewhere.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    number, folder = 1, place / name
    while folder.exists() or not (partial := _made(folder)):
        number += 1
        folder = place / f"{name} {number}"
    return folder, partial


def _made(folder: Path) -> Path | None:
    """None if somebody else writes there."""
    partial = folder.with_name(f"{folder.name}.part")
    try:
        partial.mkdir()
    except FileExistsError:
        return None
    return partial


# --- the page -------------------------------------------------------------------------------------


def _page_head(conversation: ConversationView) -> str:
    title = html.escape(one_line(conversation.name, 200))
    members = ", ".join(_name_html(one_line(m.name, 60)) for m in conversation.members)
    return (
        '<!doctype html><html><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>"
        f'<h1 dir="auto">{title}</h1><p>{members}</p>\n'
    )


def _name_html(name: str) -> str:
    """One that runs the other way turns nothing that stands beside it."""
    return f"<bdi>{html.escape(name)}</bdi>"


def message_html(message: MessageView, path: str) -> str:
    """``path``: of its file, in the folder; "" for none."""
    who = _name_html(sender_words(message))
    when = html.escape(moment_words(moment(message.sent_ms)))
    if message.edited_ms is not None and not message.retracted:
        when += f" ({html.escape(tr('edited'))})"
    own = ' class="own"' if message.is_own else ""
    parts = [f"<article{own}><header><b>{who}</b> {when}</header>"]
    if message.forwarded and not message.retracted:
        parts.append(f"<footer>{html.escape(forwarded_words())}</footer>")
    if message.quote is not None and not message.retracted:
        parts.append(_quote_html(message.quote))
    is_said = message.kind in {MessageKind.TEXT, MessageKind.FILE} and not message.retracted
    said = message.text if is_said else kind_words(message)
    if said:
        parts.append(f'<div class="said" dir="auto">{html.escape(said)}</div>')
    if message.file is not None:
        parts.append(_file_html(message, path))
    if message.reactions:
        counted = "  ".join(f"{each.emoji} {each.count}" for each in message.reactions)
        parts.append(f"<footer>{html.escape(counted)}</footer>")
    parts.append("</article>\n")
    return "".join(parts)


def _quote_html(quote: QuoteView) -> str:
    name, words = quote_words(quote)
    is_known = quote.position is not None or quote.from_before
    said = f"<br>{html.escape(words)}" if is_known else ""  # Nobody can ask for it on a page.
    return f'<blockquote dir="auto">{_name_html(name)}{said}</blockquote>'


def _file_html(message: MessageView, path: str) -> str:
    """Nothing but a picture is linked: what opens by a click may run."""
    file = message.file
    if file is None:
        return ""
    if not path:
        absent = html.escape(tr("not on this device"))
        return f"<footer>{_name_html(file.name)}: {absent}</footer>"
    if file.media_type in PICTURES:
        return f'<img src="{html.escape(quote(path))}" alt="{html.escape(file.name)}">'
    return f"<footer>{html.escape(path)}</footer>"


# --- the data -------------------------------------------------------------------------------------


def _json_head(conversation: ConversationView) -> str:
    head = {
        "format": FORMAT,
        "version": VERSION,
        "conversation": {"id": conversation.conversation_id, "name": conversation.name},
        "members": [
            {"id": member.participant_id, "name": member.name, "is_self": member.is_self}
            for member in conversation.members
        ],
    }
    return json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": ['


def message_data(message: MessageView, path: str) -> dict[str, object]:
    """As docs/export.md describes it."""
    data: dict[str, object] = {
        "id": message.message_id,
        "lamport_timestamp": message.position.lamport_timestamp,
        "sender_id": message.sender_id,
        "sender_name": message.sender_name,
        "kind": str(message.kind),
        "sent_ms": message.sent_ms,
        "text": message.text,
        "edited_ms": message.edited_ms,
        "retracted": message.retracted,
        "forwarded": message.forwarded,
        "answers": None if message.quote is None else message.quote.message_id,
        "reactions": [{"emoji": each.emoji, "count": each.count} for each in message.reactions],
        "file": None,
    }
    if message.file is not None:
        file = message.file
        data["file"] = {
            "name": file.name,
            "media_type": file.media_type,
            "size": file.size,
            "path": path or None,
        }
    return data
