"""The operator's commands, each one transaction; run by the server, or by the command itself when none runs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from bcd.controlplane.app import views
from bcd.controlplane.app.admin_eks import EkCommands
from bcd.controlplane.app.admin_nodes import NodeCommands
from bcd.controlplane.app.admin_trust import TrustCommands
from bcd.controlplane.domain import admin, tokens
from bcd.controlplane.domain.admin_eks import AllowEk
from bcd.controlplane.domain.approvals import PENDING_FOR, Approval, ApprovalState
from bcd.controlplane.domain.audit import OPERATOR, Event, Kind
from bcd.controlplane.domain.durations import show_duration
from bcd.controlplane.domain.failures import NotPermitted, Usage
from bcd.controlplane.domain.ids import (
    SHORT_ID_BYTES,
    TOKEN_SECRET_BYTES,
    ApprovalId,
    RefusalId,
    TokenId,
    TokenText,
    short_id,
    token_text,
)
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.domain.tokens import Token
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.news import News
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Statements
from bcd.controlplane.ports.store import Records, Store
from bcd.domain.model import names

T = TypeVar("T")


@dataclass(frozen=True)
class Admin:
    settings: Settings
    store: Store
    clock: WallClock
    random: Random
    news: News
    statements: Callable[[], Statements]

    def __call__(self, command: admin.Command) -> object:
        """A view, a tuple of views, or None. A Failure says what the command line prints."""
        read, change = self.store.read, self._change
        match command:
            case admin.CreateToken():
                return change(lambda records: self._create_token(records, command))
            case admin.RevokeToken(id):
                return change(lambda records: self._revoke_token(records, TokenId(id)))
            case admin.DecideApproval(id, approve, site):
                return change(lambda records: self._decide(records, ApprovalId(id), approve, site))
            case admin.ListTokens():
                now = self.clock.now()
                return read(lambda records: tuple(views.token(token, now) for token in records.tokens.all()))
            case admin.ListNodes() | admin.ShowNode() | admin.RevokeNode() | admin.DeleteNode() | admin.AskRenewal():
                return NodeCommands(self.settings, self.store, self.clock, self.news)(command)
            case (
                admin.ShowTrust()
                | admin.AddRoot()
                | admin.RemoveRoot()
                | admin.AddApprover()
                | admin.RemoveApprover()
                | admin.Restored()
            ):
                return TrustCommands(self.settings, self.store, self.clock, self.news, self.statements)(command)
            case admin.ListRefusals(limit):
                return read(lambda records: tuple(views.refusal(row) for row in records.refusals.latest(limit)))
            case admin.ShowRefusal(id):
                return read(lambda records: self._show_refusal(records, RefusalId(id)))
            case admin.TailAudit(limit, after):
                return read(
                    lambda records: tuple(
                        views.event(row)
                        for row in (records.audit.latest(limit) if after is None else records.audit.after(after, limit))
                    )
                )
            case admin.ListApprovals():
                now = self.clock.now()
                return read(lambda records: tuple(views.approval(records, row, now) for row in records.approvals.all()))
            case _:
                return EkCommands(self.store, self.clock)(command)

    def _change(self, work: Callable[[Records], T]) -> T:
        return self.store.change(work).result()

    def _create_token(self, records: Records, asked: admin.CreateToken) -> admin.NewToken:
        try:
            site, role = names.site_id(asked.site), names.role(asked.role)
            node_id = names.node_id(asked.node_id) if asked.node_id is not None else None
        except names.MalformedName as error:
            raise _usage(str(error)) from None
        ttl = timedelta(seconds=asked.ttl_s)
        if not timedelta(0) < ttl <= tokens.MAX_TTL:
            raise _usage(f"--ttl is more than 0s and at most {tokens.MAX_TTL.days}d")
        if not 1 <= asked.uses <= tokens.MAX_USES:
            raise _usage(f"--uses is 1 to {tokens.MAX_USES}")
        if node_id is not None and asked.uses != 1:
            # Each use would revoke the certificate of the one before.
            raise _usage("a token for one --node-id has one use")
        if node_id is not None and (node := records.nodes.get(node_id)) is not None and node.site != site:
            raise NotPermitted(Message.NODE_OF_ANOTHER_SITE, id=node_id, have=node.site, want=site)
        now = self.clock.now()
        token_id = TokenId(short_id(self.random.bytes(SHORT_ID_BYTES)))
        text = token_text(token_id, self.random.bytes(TOKEN_SECRET_BYTES))
        parsed = TokenText.parse(text.encode())
        if parsed is None or records.tokens.get(token_id) is not None:
            raise AssertionError("a new token is well-formed and new")
        token = Token(
            id=token_id,
            secret_sha256=parsed.secret_sha256,
            site=site,
            role=role,
            node_id=node_id,
            allow_reclaim=asked.allow_reclaim,
            require_approval=asked.require_approval,
            created=now,
            expires=now + ttl,
            uses=asked.uses,
        )
        records.tokens.put(token)
        detail: dict[str, str | int | bool] = {"token": token_id, "site": site, "role": role.value, "uses": asked.uses}
        detail |= {"ttl": show_duration(ttl), "node": node_id or ""}
        detail |= {"allowReclaim": asked.allow_reclaim, "requireApproval": asked.require_approval}
        records.audit.add(Event(now, OPERATOR, Kind.TOKEN_CREATED, detail))
        return admin.NewToken(text, token_id, token.expires)

    def _revoke_token(self, records: Records, token_id: TokenId) -> admin.TokenView:
        token = records.tokens.get(token_id)
        if token is None:
            raise Usage(Message.NO_SUCH_TOKEN, id=token_id)
        now = self.clock.now()
        if token.revoked is None:
            token = replace(token, revoked=now)
            records.tokens.put(token)
            records.audit.add(Event(now, OPERATOR, Kind.TOKEN_REVOKED, {"token": token_id}))
        return views.token(token, now)

    def _show_refusal(self, records: Records, refusal_id: RefusalId) -> admin.RefusalView:
        refusal = records.refusals.get(refusal_id)
        if refusal is None:
            raise Usage(Message.NO_SUCH_REFUSAL, id=refusal_id)
        return views.refusal(refusal)

    def _decide(self, records: Records, approval_id: ApprovalId, approve: bool, site: str | None) -> admin.ApprovalView:
        question = records.approvals.get(approval_id)
        if question is None:
            raise Usage(Message.NO_SUCH_APPROVAL, id=approval_id)
        now = self.clock.now()
        wanted = ApprovalState.APPROVED if approve else ApprovalState.DENIED
        if question.lapsed(now):
            raise NotPermitted(Message.APPROVAL_LAPSED, id=approval_id, at=_time(question.asked + PENDING_FOR))
        if site is not None and not question.ek:
            raise Usage(Message.USAGE, command="approvals approve", what="the token says the site")
        if question.state is ApprovalState.PENDING:
            if approve and question.ek:
                question = self._allow(records, question, site)
            question = replace(question, state=wanted, decided=now)
            records.approvals.put(question)
            kind = Kind.APPROVAL_GIVEN if approve else Kind.APPROVAL_DENIED
            detail = {"approval": approval_id, "token": question.token_id, "source": question.source}
            detail |= {"ek": question.ek} if question.ek else {}
            records.audit.add(Event(now, OPERATOR, kind, detail))
        elif question.state is not wanted:
            at = _time(question.decided or now)
            raise NotPermitted(Message.ALREADY_DECIDED, id=approval_id, state=question.state.value, at=at)
        return views.approval(records, question, now)

    def _allow(self, records: Records, question: Approval, site: str | None) -> Approval:
        """To let a TPM join is to put its endorsement key on the list."""
        if site is None:
            raise Usage(Message.APPROVAL_WANTS_SITE, id=question.id, ek=question.ek)
        asked = AllowEk(question.ek, site, question.role.value, None, f"approval {question.id}")
        EkCommands(self.store, self.clock).allow(records, asked)
        return replace(question, site=names.SiteId(site))


def _usage(what: str) -> Usage:
    return Usage(Message.USAGE, command="token create", what=what)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
