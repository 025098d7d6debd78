"""The words for what the engine says in codes: problems of Stores, of service nodes and of fetches.

Without capital and full stop, because some stand in the middle of a sentence; ``sentence`` makes
one of them.  Details are technical text of peers, libraries and the system: they are put on one
line, and not translated.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never

from engine.core.history.queries import End
from engine.core.problems import (
    AnswersWrongly,
    CheckedProblem,
    EntriesRefused,
    HistoryProblem,
    MessagesOmitted,
    NoAnswer,
    NodeFailed,
    NodeFault,
    NodeProblem,
    NoStoreToAsk,
    OffersNo,
    OtherCluster,
    QueryFailed,
    Refuses,
    StoreProblem,
    Unreachable,
)
from ui.foreign_text import one_line
from ui.translate import tr
from ui.transport_words import transport_words

_LONGEST: Final = 300


def sentence(text: str) -> str:
    """With a capital and a full stop; empty stays empty."""
    line = one_line(text, _LONGEST).strip().rstrip(".")
    return f"{line[0].upper()}{line[1:]}." if line else ""


# --- Stores and fetches ---------------------------------------------------------------------------

_QUERY_REASONS: Final[Mapping[str, Callable[[], str]]] = {
    "unreachable": lambda: tr("it cannot be reached"),
    "too_many_requests": lambda: tr("it says that it is asked too often"),
    "unavailable": lambda: tr("it says that it is out of service"),
    "protocol_unsupported": lambda: tr("it keeps no messages for others"),
    "no_store": lambda: tr("there is no Store to ask"),
    "store_hash_mismatch": lambda: tr("it gave a message that does not bear its hash"),
    "store_entry_unasked": lambda: tr("it gave messages that were not asked for"),
    "store_entry_without_data": lambda: tr("it gave messages without content"),
    "store_entry_outside_window": lambda: tr("it gave messages of another time"),
    "store_cursor_stuck": lambda: tr("its pages do not go on"),
    "store_cursor_repeated": lambda: tr("its pages begin again and again"),
    "store_cursor_malformed": lambda: tr("its pages cannot be followed"),
    "store_cursor_unknown": lambda: tr("it forgets where its pages were"),
    "bad_request": lambda: tr("it refuses to answer"),
    "bad_response": lambda: tr("it refuses to answer"),
    "status_unknown": lambda: tr("it answers with an unknown status"),
    "frame_oversized": lambda: tr("its answer is larger than allowed"),
}
"""The reasons of ``End.FAULTED``; for all others, which a parser found, there is one sentence."""


def store_problem_words(problem: StoreProblem | None) -> str:
    """Empty if there is none."""
    match problem:
        case None:
            words = ""
        case QueryFailed():
            words = _query_words(problem)
        case MessagesOmitted(number=number):
            words = tr(
                "it did not have %n messages that others had",
                "it did not have %n message that others had",
                number,
            )
        case EntriesRefused(number=number):
            words = tr(
                "%n entries of its answer could not be used",
                "%n entry of its answer could not be used",
                number,
            )
        case NoAnswer(timeout_s=timeout_s):
            words = _no_answer(timeout_s)
        case Unreachable(fault=fault, detail=detail):
            words = transport_words(fault, detail)
        case OtherCluster():
            words = _other_cluster(problem)
        case AnswersWrongly(detail=detail):
            words = _wrong_answer(detail)
        case Refuses(detail=detail):
            words = tr("it refuses: {detail}").format(detail=one_line(detail, _LONGEST))
        case _:
            assert_never(problem)
    return words


_QUERY_ENDS: Final[Mapping[End, Callable[[], str]]] = {
    End.NOTHING_NEW: lambda: tr("its pages bring nothing new and never end"),
    End.TOO_MANY_PAGES: lambda: tr("it has more pages than are read at once"),
    End.TIMEOUT: lambda: tr("it does not answer in time"),
    End.CANNOT: lambda: tr("it cannot look for single messages"),
}
"""``End.FAULTED`` has a reason, and the other ends are no problem."""


def _query_words(problem: QueryFailed) -> str:
    if not problem.reason and problem.end in _QUERY_ENDS:
        return _QUERY_ENDS[problem.end]()
    if problem.reason in _QUERY_REASONS:
        return _QUERY_REASONS[problem.reason]()
    return tr("its answer cannot be read ({reason})").format(reason=problem.reason)


def history_problem_words(problem: HistoryProblem | None) -> str:
    """Why a fetch waits or failed; empty if there is no problem."""
    match problem:
        case None:
            words = ""
        case NoStoreToAsk():
            words = tr("there is no Store to ask; it is fetched as soon as there is one")
        case QueryFailed():
            words = tr("no Store answered to the end; of the one that came furthest: {why}")
            words = words.format(why=_query_words(problem))
        case _:
            assert_never(problem)
    return words


# --- service nodes --------------------------------------------------------------------------------


def checked_problem_words(problem: CheckedProblem) -> str:
    """What a test of a service node found; a clause of its own."""
    match problem:
        case OffersNo(services=services):
            words = tr("it offers no {services}").format(services=_services(services))
        case NoAnswer(timeout_s=timeout_s):
            words = _no_answer(timeout_s)
        case Unreachable(fault=fault, detail=detail):
            words = transport_words(fault, detail)
        case OtherCluster():
            words = _other_cluster(problem)
        case _:
            assert_never(problem)
    return words


def node_problem_words(problem: NodeProblem) -> str:
    """What is wrong with a service node; follows its name."""
    match problem:
        case NodeFailed():
            words = _fault_words(problem)
        case OffersNo(services=services):
            words = tr("offers no {services}").format(services=_services(services))
        case Unreachable(fault=fault, detail=detail):
            why = transport_words(fault, detail)
            words = tr("cannot be reached ({why})").format(why=why)
        case OtherCluster():
            words = tr("cannot be used ({why})").format(why=_other_cluster(problem))
        case AnswersWrongly(detail=detail):
            words = tr("cannot be used ({why})").format(why=_wrong_answer(detail))
        case _:
            assert_never(problem)
    return words


def _fault_words(problem: NodeFailed) -> str:
    match problem.fault:
        case NodeFault.CLOSED:
            words = tr("has closed the connection")
        case NodeFault.SILENT:
            words = tr("does not answer {service} requests")
        case NodeFault.WRONG_ANSWER:
            words = tr("answers {service} requests wrongly ({detail})")
        case NodeFault.SLOW:
            words = tr("is slow to answer")
        case NodeFault.MESSAGE_REFUSED:
            words = tr("refused a message ({detail})")
        case NodeFault.BUSY:
            words = tr("takes no messages now ({detail})")
        case NodeFault.SUBSCRIPTIONS_REFUSED:
            words = tr("refuses subscriptions ({detail})")
        case _:
            assert_never(problem.fault)
    detail = one_line(f"{problem.cause} {problem.said}", _LONGEST)
    return words.format(service=problem.service, detail=detail)


def _services(services: Sequence[str]) -> str:
    if len(services) == 1:
        return services[0]
    return tr("{service} and no {other}").format(service=services[0], other=services[1])


def _no_answer(timeout_s: float) -> str:
    return tr("no answer in {seconds:g} s").format(seconds=timeout_s)


def _wrong_answer(detail: str) -> str:
    return tr("it answers wrongly: {detail}").format(detail=one_line(detail, _LONGEST))


def _other_cluster(problem: OtherCluster) -> str:
    words = tr("it is in cluster {theirs}, this device in cluster {ours}")
    return words.format(theirs=problem.theirs, ours=problem.ours)
