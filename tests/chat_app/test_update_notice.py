"""Whether there is a newer version: asked once a day, by whoever agreed, and told rightly."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from chat_app.update_notice import (
    DAY_MS,
    STATE_KEY,
    Channel,
    UpdateNotice,
    channel_here,
    notice_here,
    parse_channel,
)
from engine.core.ids import UnixMs
from engine.core.releases import Release, ReleaseError, ReleaseFlaw
from engine.crypto.releases import announce, believe
from engine.network.https import HttpsAddress, parse_https
from scripts import release_channel
from ui.update_port import UpdateState

SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
CHANNEL = Channel(
    address=parse_https("https://releases.example/newest.txt"),
    page="https://releases.example/",
    key=SECRET.public_key().public_bytes_raw(),
)
NOON = 1_795_780_800_000


def announced(version: str = "0.3.0", serial: int = 7) -> bytes:
    release = Release(serial=serial, version=version, day="2026-12-20", news=("Faster.",))
    return announce(release, SECRET.sign)


class Database:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def value(self, key: str, /) -> str | None:
        return self.values.get(key)

    async def save_value(self, key: str, value: str, /) -> None:
        self.values[key] = value


class Device:
    """One with an hour, a wish, and a server whose answer the test sets."""

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or Database()
        self.now_ms = NOON
        self.wish = True
        self.answer: bytes | ReleaseError = announced()
        self.asked = 0
        self.told = 0
        self.notice = UpdateNotice(
            CHANNEL,
            self.database,
            version="0.2.0",
            wanted=lambda: self.wish,
            now_ms=lambda: UnixMs(self.now_ms),
            fetch_from=self._fetch,
        )
        self.notice.listen(self._hear)

    async def _fetch(self, address: HttpsAddress) -> bytes:
        assert address == CHANNEL.address
        self.asked += 1
        if isinstance(self.answer, ReleaseError):
            raise self.answer
        return self.answer

    def _hear(self) -> None:
        self.told += 1

    async def started_again(self) -> "Device":
        again = Device(self.database)
        again.now_ms = self.now_ms
        await again.notice.load()
        return again


async def test_nobody_is_asked_before_the_user_agreed() -> None:
    device = Device()
    device.wish = False
    for _ in range(3):
        await device.notice.look()
        device.now_ms += DAY_MS
    assert (device.asked, device.database.values) == (0, {})
    assert device.notice.view().state is UpdateState.OFF
    device.wish = True
    assert device.notice.view().state is UpdateState.NOT_YET
    await device.notice.look()
    assert device.asked == 1
    device.wish = False
    assert device.notice.view().state is UpdateState.OFF


async def test_it_is_off_unless_somebody_switches_it_on(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    settings = load_settings(file)
    control = SettingsControl(file, settings)
    notice = notice_here(Database(), control, settings, CHANNEL)
    assert notice is not None
    assert notice.view().state is UpdateState.OFF
    await control.change(("privacy", "ask_for_updates"), True)
    assert notice.view().state is UpdateState.NOT_YET
    assert notice_here(Database(), control, settings, None) is None


async def test_a_newer_version_is_told_once_a_day_is_asked() -> None:
    device = Device()
    await device.notice.look()
    view = device.notice.view()
    assert (view.state, view.asked_ms, device.told) == (UpdateState.NEWER, NOON, 1)
    assert view.release is not None
    assert (view.release.version, view.release.news) == ("0.3.0", ("Faster.",))
    device.now_ms += DAY_MS - 1
    await device.notice.look()
    assert device.asked == 1
    device.now_ms += 1
    await device.notice.look()
    assert device.asked == 2


@pytest.mark.parametrize("version", ["0.2.0", "0.1.9"])
async def test_what_is_not_newer_is_the_newest(version: str) -> None:
    device = Device()
    device.answer = announced(version)
    await device.notice.look()
    assert device.notice.view().state is UpdateState.CURRENT


async def test_a_restart_forgets_nothing() -> None:
    device = Device()
    await device.notice.look()
    again = await device.started_again()
    assert again.notice.view() == device.notice.view()
    await again.notice.look()
    assert again.asked == 0


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        (ReleaseError(ReleaseFlaw.UNREACHABLE, "no route"), ReleaseFlaw.UNREACHABLE),
        (announced().replace(b"0.3.0", b"9.9.9"), ReleaseFlaw.NOT_SIGNED),
        (announced("0.2.9", serial=6), ReleaseFlaw.OLD),
        (b"causerie-releases 2\n", ReleaseFlaw.TOO_NEW),
        (bytes(1024 * 1024), ReleaseFlaw.TOO_LARGE),
        (b"<html>", ReleaseFlaw.BROKEN),
    ],
)
async def test_what_does_not_count_is_said_and_changes_nothing(
    answer: bytes | ReleaseError, flaw: ReleaseFlaw
) -> None:
    device = Device()
    await device.notice.look()
    device.now_ms += DAY_MS
    device.answer = answer
    await device.notice.look()
    view = device.notice.view()
    assert view.problem is not None
    assert view.problem.flaw is flaw
    assert view.release is not None
    assert (view.state, view.release.version) == (UpdateState.NEWER, "0.3.0")
    await device.notice.look()
    assert device.asked == 2, "once a day, also if it failed"
    device.now_ms += DAY_MS
    device.answer = announced("0.3.1", serial=8)
    await device.notice.look()
    assert device.notice.view().problem is None


async def test_a_clock_that_was_set_back_does_not_end_it() -> None:
    device = Device()
    await device.notice.look()
    device.now_ms -= 100 * DAY_MS
    await device.notice.look()
    await device.notice.look()
    assert device.asked == 2


async def test_a_version_one_wants_to_hear_no_more_of_and_the_next() -> None:
    device = Device()
    await device.notice.look()
    await device.notice.dismiss()
    again = await device.started_again()
    assert again.notice.view().is_dismissed
    again.now_ms += DAY_MS
    again.answer = announced("0.3.1", serial=8)
    await again.notice.look()
    assert not again.notice.view().is_dismissed


@pytest.mark.parametrize("kept", ["", "[]", "null", "{", '{"news": 5}', '{"asked_ms": "x"}'])
async def test_what_was_kept_and_cannot_be_read_is_as_if_nobody_asked(kept: str) -> None:
    database = Database()
    database.values[STATE_KEY] = kept
    device = Device(database)
    await device.notice.load()
    assert device.notice.view().state is UpdateState.NOT_YET
    await device.notice.look()
    assert json.loads(database.values[STATE_KEY])["version"] == "0.3.0"


# --- what a build is told -------------------------------------------------------------------------


def environment(**changed: str) -> dict[str, str]:
    told = {
        "CAUSERIE_RELEASES_AT": "https://releases.example/newest.txt",
        "CAUSERIE_RELEASES_PAGE": "https://releases.example/",
        "CAUSERIE_RELEASES_KEY": CHANNEL.key.hex(),
    }
    return {**told, **changed}


def test_a_build_knows_where_to_look_if_it_was_told_and_a_clone_does_not(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    file = tmp_path / "assets" / "release-channel.txt"
    with release_channel.told(tmp_path, environment()):
        assert channel_here(file) == CHANNEL
    assert channel_here(file) is None
    file.write_text("left behind")
    with release_channel.told(tmp_path, {}):
        assert channel_here(file) is None
    assert channel_here() is None, "this clone asks nobody"


@pytest.mark.parametrize("name", release_channel.NAMES)
@pytest.mark.parametrize("value", ["", "http://releases.example/x", "00" * 31, "é"])
def test_a_build_that_was_told_wrongly_is_refused(name: str, value: str) -> None:
    with pytest.raises(SystemExit):
        release_channel.channel_text(environment(**{name: value}))


def test_a_file_that_says_nothing_is_no_channel(tmp_path: Path) -> None:
    file = tmp_path / "release-channel.txt"
    for text in ("", "one line\n", "https://a.example/x\nhttps://a.example/\nzz\n"):
        file.write_text(text)
        assert channel_here(file) is None
        with pytest.raises(ValueError, match=r"."):
            parse_channel(text)


def test_a_key_is_made_once_and_what_it_signs_is_believed(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "releases.key"
    run = release_channel.main
    assert run(["new-key", str(file)]) == 0
    public = capsysbinary.readouterr().out.decode().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        run(["new-key", str(file)])
    sign = ["announce", "--key", str(file), "--serial", "1", "--day", "2026-12-20"]
    assert run([*sign, "Faster.", "Quieter."]) == 0
    made = capsysbinary.readouterr().out
    release = believe(made, bytes.fromhex(public), seen_serial=0)
    assert release.news == ("Faster.", "Quieter.")
    assert run([*sign, ""]) == 1
