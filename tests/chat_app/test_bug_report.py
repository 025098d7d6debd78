"""A report of a problem: what it tells, and that nothing of what is secret is in its bytes."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace as changed
from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_app.bug_report import BugReports
from chat_app.settings import Settings
from engine.core.errors import StorageError
from engine.core.fault_bench import FaultRule, FaultTarget
from engine.delivery.pseudonym import key_text
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.sqlite_log import SUFFIX, find_logs
from engine.network.memory import MemoryNetwork
from engine.runtime.engine import Engine
from tests.runtime.conftest import Person

KEY = bytes(range(32))
HOUR_MS = 3_600_000
SECRETS = Settings()
SECRETS = changed(
    SECRETS,
    network=changed(
        SECRETS.network,
        peers=("/ip4/203.0.113.77/tcp/4001/p2p/16Uiu2HAmSecretPeer",),
        proxy="socks5h://198.51.100.9:9050",
        listen_host="192.0.2.55",
    ),
    backup=changed(SECRETS.backup, folder="/srv/hidden-folder"),
    delivery=changed(SECRETS.delivery, key=key_text(KEY)),
)


def recorder_in(place: Path, person: Person) -> Recorder:
    settings = RecorderSettings(
        directory=place, key=KEY, app_version="1", network="test", linger_ms=1
    )
    return Recorder(settings, now_ms=person.now_ms, random_bytes=os.urandom)


def reports_of(alice: Person, logs: Path, *, later_ms: int = 0) -> BugReports:
    return BugReports(
        alice.engine,
        lambda: logs,
        lambda: SECRETS,
        version=lambda: "0.1.0",
        records=lambda: True,
        now_ms=lambda: alice.now_ms() + later_ms,
    )


async def test_no_secret_is_in_its_bytes_and_ids_agree_within_it(tmp_path: Path) -> None:
    network, logs = MemoryNetwork(), tmp_path / "logs"
    alice = Person("Zelda Quicksilver", tmp_path, network)
    bob = Person("Bartholomew", tmp_path, network)
    recorder = recorder_in(logs, alice)
    alice.engine = Engine(replace(alice.parts, recorder=recorder))
    await alice.start()
    await bob.start()
    try:
        group = await alice.engine.groups.create("Clandestine")
        link = await alice.engine.groups.make_invite_link(group)
        await bob.engine.groups.join(link)
        said = await alice.engine.timeline.send_text(group, "the password is swordfish")
        sent = await alice.engine.timeline.send_file(
            group, data=b"file bytes of note", name="tax-return.txt", media_type="text/plain"
        )
        alice.engine.faults.set(FaultTarget(conversation_id=group), FaultRule(paused=True))
        recorder.flush()
        report = await reports_of(alice, logs).make()
        me, him = alice.engine.identity(), bob.engine.identity()
        assert me is not None
        assert him is not None
        forbidden = [
            "swordfish", "Zelda", "Quicksilver", "Bartholomew", "Clandestine", "tax-return",
            "file bytes", link, link[-40:], key_text(KEY), KEY.hex(), "203.0.113.77",
            "198.51.100.9", "192.0.2.55", "16Uiu2HAmSecretPeer", "hidden-folder",
            str(tmp_path), str(said), str(sent), str(group), str(me.participant_id),
            str(him.participant_id), me.fingerprint, him.fingerprint,
        ]  # fmt: skip
        assert [secret for secret in forbidden if secret.casefold() in report.text.casefold()] == []
        head, *lines = map(json.loads, report.text.splitlines())
        assert head["app"] == "0.1.0"
        events = [line for line in lines if "kind" in line]
        assert len(events) == head["events"] == report.events > 3
        sent_ids = {each["message_id"] for each in events if each["kind"] == "sent"}
        published = {each["message_id"] for each in events if each["kind"] == "published"}
        assert sent_ids & published, "the same message has the same name throughout"
        assert "fault" in {each["kind"] for each in events}
        (settings,) = (line["settings"] for line in lines if "settings" in line)
        assert settings["network.cluster"] == 42
        again = await reports_of(alice, logs).make()
        assert not any(str(one) in again.text for one in sent_ids)
        old = await reports_of(alice, logs, later_ms=2 * HOUR_MS).make()
        assert old.events == 0
    finally:
        await alice.engine.stop()
        await bob.engine.stop()


async def test_a_hostile_or_damaged_log_adds_nothing_of_its_own(tmp_path: Path) -> None:
    alice, logs = Person("Ann", tmp_path, MemoryNetwork()), tmp_path / "logs"
    alice.engine = Engine(replace(alice.parts, recorder=recorder_in(logs, alice)))
    await alice.start()
    await alice.engine.groups.create("Tide")
    await alice.engine.stop()
    (path,) = find_logs(logs)
    with closing(sqlite3.connect(path)) as log:
        log.execute("PRAGMA ignore_check_constraints = ON")
        log.execute("UPDATE delivery_event SET detail = 'Swordfish 10.0.0.1'")
        log.commit()
    (logs / f"rubbish{SUFFIX}").write_bytes(b"swordfish" * 500)
    alice.engine = Engine(
        replace(alice.parts, make_transport=lambda _seed: MemoryNetwork().attach("Ann"))
    )
    await alice.start()
    try:
        report = await reports_of(alice, logs).make()
        assert "swordfish" not in report.text.casefold()
        assert "10.0.0.1" not in report.text
        assert json.loads(report.text.splitlines()[0])["logs_not_readable"] == 1
        saved = await reports_of(alice, logs).save(report, tmp_path)
        assert saved.read_text("utf-8") == report.text
        with pytest.raises(StorageError):
            await reports_of(alice, logs).save(report, tmp_path / "nowhere")
        assert (await reports_of(alice, tmp_path / "none").make()).events == 0
    finally:
        await alice.engine.stop()
