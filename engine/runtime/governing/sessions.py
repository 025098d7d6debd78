"""What the commands about a governed group ask of its session."""

from engine.core.admin_log.acts import Act, EntryId
from engine.core.admin_log.log import AdminState
from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import ParticipantId
from engine.core.joining import Reason
from engine.runtime.conversation_runner import ConversationRunner
from engine.session.group.governed import GovernedPart
from engine.session.group.session import GroupSession
from engine.session.inputs import Govern


def session_of(runner: ConversationRunner) -> GroupSession | None:
    """None while it is loaded, and if the group is not governed."""
    session = runner.session
    if isinstance(session, GroupSession) and session.governed is not None:
        return session
    return None


def governed_session(runner: ConversationRunner) -> GroupSession:
    """Raises CommandError while it is loaded, and if the group is not governed."""
    if runner.session is None:
        raise CommandError(CommandRefusal.STILL_LOADING)
    session = session_of(runner)
    if session is None:
        raise CommandError(CommandRefusal.NOT_GOVERNED)
    return session


def part_of(session: GroupSession) -> GovernedPart:
    if session.governed is None:
        raise CommandError(CommandRefusal.NOT_GOVERNED)
    return session.governed


def state_of(session: GroupSession) -> AdminState:
    """As far as everything that came was judged; that may be a moment behind."""
    return part_of(session).governance.state


def may_invite(session: GroupSession) -> bool:
    """Whether we may let others in, as far as the log says now."""
    known = session.governance()
    return known is not None and known.may_invite


async def govern(runner: ConversationRunner, act: Act) -> None:
    """Write an entry of ours.  Raises CommandError, if our role does not allow it any more, too."""
    governed_session(runner)
    await runner.do(Govern(act))


def closed_because(state: AdminState, invitation_id: EntryId) -> Reason | None:
    """Why nobody can come in by it any more; None if somebody can, unless it is expired."""
    invitation = state.invitations.get(invitation_id)
    if invitation is None or invitation.is_revoked:
        return Reason.REVOKED
    return None if invitation.is_open else Reason.SPENT


def is_known_to_removed(state: AdminState, invitation_id: EntryId, *who: ParticipantId) -> bool:
    """Whether somebody else removed one of ``who`` after the invitation was made, or beside that.

    Or anybody who came in by it: they have the link, and could follow it under another key.
    """
    invitation = state.invitations.get(invitation_id)
    made, came = (0, ()) if invitation is None else (invitation.lamport_timestamp, invitation.came)
    return any(
        state.removed_by.get(each, each) != each and state.removed_at[each] >= made
        for each in (*who, *came)
    )
