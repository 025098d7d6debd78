"""What would become of an entry that knew all others: whether to write it at all.

Judging a log takes time that grows with its length; this does not.  Who knows everything acts under
a term that nothing ended, and nothing is hidden from them, so that their entry is void for nobody
else's sake.  ``judging`` has the rules themselves.
"""

from engine.core.admin_log.acts import (
    LEAST_ROLE,
    MAX_REPEATS,
    Add,
    Create,
    DeleteMessage,
    Demote,
    Entry,
    Invite,
    Remove,
    Revoke,
    Role,
    Unsupported,
)
from engine.core.admin_log.judging import Judgement, Term, Verdict, done_by


def verdict_on_next(judgement: Judgement, inviters: Role, entry: Entry) -> Verdict:
    """``inviters``: who may admit, as the log says now; ``judgement``: of all other entries."""
    act = entry.act
    if isinstance(act, Unsupported):
        return Verdict.UNSUPPORTED
    if isinstance(act, Create):
        return Verdict.NOT_THE_FIRST
    if isinstance(act, Remove | Demote) and act.member == entry.author:
        return Verdict.COUNTS
    for term in judgement.terms:
        if term.who != entry.author or term.role < _least_role(judgement, inviters, term, entry):
            continue
        return _under(judgement, term, entry)
    return Verdict.NOT_ALLOWED


def _under(judgement: Judgement, term: Term, entry: Entry) -> Verdict:
    if _is_outranked(judgement, term, entry):
        return Verdict.OUTRANKED
    done = done_by(entry)
    if done is not None and judgement.times.get(done, 0) >= MAX_REPEATS:
        return Verdict.TOO_OFTEN
    return _by_invitation(judgement, term, entry)


def _least_role(judgement: Judgement, inviters: Role, term: Term, entry: Entry) -> Role:
    act = entry.act
    if isinstance(act, Revoke) and act.invitation in judgement.invites:
        _, made_under = judgement.invites[act.invitation]
        if made_under == term:
            return Role.MEMBER
    if isinstance(act, Add | Invite) and term.role is Role.MEMBER:
        return inviters
    return LEAST_ROLE[type(act)]


def _is_outranked(judgement: Judgement, term: Term, entry: Entry) -> bool:
    match entry.act:
        case Remove(member=other) | Demote(member=other) | DeleteMessage(author=other):
            held = (one for one in judgement.terms if one.who == other)
            return any(one.rank < term.rank for one in held)
        case _:
            return False


def _by_invitation(judgement: Judgement, term: Term, entry: Entry) -> Verdict:
    act = entry.act
    if not isinstance(act, Add) or act.invitation is None:
        return Verdict.COUNTS
    if act.invitation not in judgement.invites:
        return Verdict.NO_INVITATION
    invite, made_under = judgement.invites[act.invitation]
    if made_under.who != entry.author and term.role is Role.MEMBER:
        return Verdict.NOT_ALLOWED
    if entry.sent_ms > invite.expires_ms:
        return Verdict.EXPIRED
    if act.invitation in judgement.revoked:
        return Verdict.REVOKED
    is_spent = judgement.uses.get(act.invitation, 0) >= invite.uses
    return Verdict.SPENT if is_spent else Verdict.COUNTS
