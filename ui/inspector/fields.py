"""The fields of a message under the specifications' own names, and what its bytes weigh."""

from collections.abc import Iterator

from engine.inspection_views import FilterView, MessageInspection, MvdsView, SdsView
from ui.conversation_words import chance_words
from ui.foreign_text import breaking, one_line
from ui.regional import decimal, grouped
from ui.translate import tr

_LONGEST = 160

Fields = tuple[tuple[str, str], ...]


def not_recorded() -> str:
    return tr("not recorded")


def raw_fields(found: MessageInspection) -> Fields:
    """Of SDS or MVDS; nothing is left out but what is not there."""
    if found.sds is not None:
        return tuple(_sds(found.sds))
    if found.mvds is not None:
        return tuple(_mvds(found.mvds))
    return (("message_id", _shown(found.message_id)),)


def _shown(value: str) -> str:
    """Ids and names of strangers may be anything."""
    return breaking(one_line(value, _LONGEST))


def _listed(ids: tuple[str, ...]) -> str:
    return "\n".join(map(_shown, ids)) or tr("none")


def _sds(sds: SdsView) -> Iterator[tuple[str, str]]:
    yield "message_id", _shown(sds.message_id)
    yield "sender_id", _shown(sds.sender_id)
    yield "channel_id", _shown(sds.channel_id)
    lamport = sds.lamport_timestamp
    yield "lamport_timestamp", tr("none") if lamport is None else str(lamport)
    yield "causal_history", _listed(sds.causal_history)
    yield "bloom_filter", tr("none") if sds.bloom_filter is None else _filter(sds.bloom_filter)
    yield "repair_request", _listed(sds.repair_request)
    yield "content", bytes_words(sds.content_size)
    if sds.sequence is not None:
        yield "instance_id", _shown(sds.instance_id)
        yield "sequence", str(sds.sequence)
        yield "previous_id", _shown(sds.previous_id) if sds.previous_id else tr("none")
    if sds.replaces is not None:
        yield "replaces", _shown(sds.replaces)
    if sds.signed_ms is not None:
        yield "signed_ms", str(sds.signed_ms)
    yield "retrieval_hint", _shown(sds.retrieval_hint) or tr("none is known")


def _filter(view: FilterView) -> str:
    words = tr("{size}, {bits} bits, {fill} % set, about {ids} ids; wrong with a {chance}")
    return words.format(
        size=bytes_words(view.size),
        bits=grouped(view.bits),
        fill=decimal(100 * view.fill),
        ids=grouped(view.about_ids),
        chance=chance_words(view.false_probability),
    )


def _mvds(mvds: MvdsView) -> Iterator[tuple[str, str]]:
    yield "message_id", _shown(mvds.message_id)
    yield "group_id", _shown(mvds.group_id)
    yield "timestamp", not_recorded() if mvds.timestamp is None else str(mvds.timestamp)
    body = mvds.body_size
    yield "body", tr("not kept any more") if body is None else bytes_words(body)
    yield "record", mvds.record.upper() if mvds.record else tr("none: nothing is left to send")
    if mvds.record:
        yield "send_count", str(mvds.send_count)
        epoch = mvds.send_epoch
        yield "send_epoch", tr("never: given up") if epoch is None else str(epoch)


def bytes_words(size: int) -> str:
    return tr("{size} bytes").format(size=grouped(size))


def part_fields(found: MessageInspection) -> Fields:
    """What the kept bytes consist of, and each copy on the wire as far as it was noted."""
    fields = [(part.name, bytes_words(part.size)) for part in found.parts]
    if found.parts:
        whole = sum(part.size for part in found.parts)
        fields.append((tr("together"), bytes_words(whole)))
    sealed = bytes_words(found.copies[-1].size) if found.copies else not_recorded()
    fields.append((tr("on the wire"), sealed))
    return tuple(fields)
