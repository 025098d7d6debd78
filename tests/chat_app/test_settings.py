"""The settings file: whatever stands in it, there are settings or one complaint that helps."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.compose import mvds_config
from chat_app.settings import DEFAULTS, Settings, find_key, keys_of, sections_of
from chat_app.settings_reading import (
    MAX_FILE_BYTES,
    ReadSettings,
    load_settings,
    load_what_is_right,
    parse_settings,
    read_text,
)
from engine.core.errors import ConfigError, SettingsError
from engine.core.mvds.config import Mode
from engine.core.mvds.vocabulary import WireGeneration
from engine.session.pair.factory import PAIR_CONFIG
from ui.error_words import error_words

FILE = Path("settings.toml")
PEER = "/ip4/192.0.2.1/tcp/60000"
DELIVERY_KEY = "k" * 42 + "g"
PEER_ID = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


def complaint(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, FILE)
    return str(caught.value)


def outcome_of(text: str) -> Settings | str:
    try:
        return parse_settings(text, FILE)
    except ConfigError as error:
        return str(error)


def test_no_file_and_an_empty_file_mean_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml") == DEFAULTS == Settings()
    assert parse_settings("", FILE) == DEFAULTS


def test_every_key_is_read_into_its_own_field() -> None:
    text = f"""
[network]
listen_host = "0.0.0.0"
port = 60001
peers = ["{PEER}"]
service_nodes = ["{PEER}/p2p/{PEER_ID}"]
role = "edge"
discovery = false
proxy = "socks5://127.0.0.1:9050"
connections_per_address = 7
cluster = 1
shards = 16
mvds_mode = "interactive"
mvds_wire = "draft"
[node]
devices = 1100
subscribers = 1000
blobs_mb = 50
blob_days = 3
[appearance]
theme = "high-contrast"
language = "fr"
motion = "off"
density = "compact"
text_size = 150
[notifications]
enabled = false
preview = false
mentions_when_muted = false
[desktop]
tray = false
close_to_tray = "no"
[privacy]
typing = false
presence = false
confirm_links = false
fetch_pictures_below_mb = 0
ask_for_updates = true
lock_after = "15"
lock_with_screen = false
[storage]
key = "file"
keep_days = 7
keep_megabytes = 100
files_megabytes = 500
[backup]
folder = "/media/stick"
keep_daily = 3
keep_weekly = 0
remind = false
[log]
level = "debug"
max_bytes = 20000
keep_files = 1
[delivery]
record = true
key = "{DELIVERY_KEY}"
max_megabytes = 8
"""
    settings = parse_settings(text, FILE)
    document = tomllib.loads(text)
    for name, section in sections_of(settings):
        for key in keys_of(name):
            expected = document[name][key.name]
            found = getattr(section, key.name)
            assert found == (tuple(expected) if isinstance(expected, list) else expected)
            assert found != key.default, "the example must differ from the default everywhere"


def test_a_misspelt_key_is_named_with_its_line_and_the_likely_one() -> None:
    text = complaint("[network]\n\nprot = 5\n")
    assert text.startswith("settings.toml:3: [network] prot: unknown; did you mean port?")
    keys = "service_nodes, role, discovery, proxy, connections_per_address, cluster, shards"
    assert keys in text


def test_a_misspelt_section_is_named_with_the_likely_one() -> None:
    text = complaint("# mine\n[netwrok]\nport = 5\n")
    assert text.startswith("settings.toml:2: netwrok: unknown; did you mean network?")


@pytest.mark.parametrize("text", ["port = 5\n", "[log]\nport = 5\n"])
def test_a_key_in_the_wrong_place_is_sent_home(text: str) -> None:
    assert "it belongs under [network]" in complaint(text)


@pytest.mark.parametrize("value", ["70000", '"80"'])
def test_the_window_says_what_is_allowed_instead(value: str) -> None:
    with pytest.raises(SettingsError) as wrong:
        parse_settings(f"[network]\nport = {value}\n", FILE)
    assert error_words(wrong.value) == (
        'The setting "[network] port" has an impossible value (settings.toml:2).'
        " Allowed: a whole number from 0 to 65535."
    )


def test_a_section_written_as_a_value_is_explained() -> None:
    assert "is a section, to be written [network]" in complaint("network = 5\n")


@pytest.mark.parametrize(
    ("section", "line", "expected"),
    [
        ("network", "port = -1", "a whole number from 0 to 65535"),
        ("network", "port = 65536", "a whole number from 0 to 65535"),
        ("network", "port = true", "a whole number from 0 to 65535"),
        ("network", 'port = "80"', '"80" (text in quotes)'),
        ("network", "port = 80.0", "a number with a fraction"),
        ("network", "port = 2026-01-01", "a date or time"),
        ("network", "shards = 0", "a whole number from 1 to 1024"),
        ("network", 'mvds_mode = "mixed"', '"ours", "batch" or "interactive"'),
        ("network", "mvds_wire = 6", '"rfc" or "draft"'),
        ("network", 'listen_host = "localhost"', "an IPv4 or IPv6 address"),
        ("network", "listen_host = 127", "an IPv4 or IPv6 address"),
        ("network", 'listen_host = "Auto"', '"auto" or an IPv4'),
        ("network", f'service_nodes = ["{PEER}"]', f'address "{PEER}": /p2p/ and the peer id are'),
        ("network", f'service_nodes = "{PEER}"', "at most 8 multiaddrs"),
        ("network", "discovery = 1", "true or false"),
        ("network", "proxy = true", "empty, or a SOCKS5 proxy by its IP address"),
        ("network", 'proxy = "http://a"', 'proxy "http://a": "http" is no kind of proxy'),
        ("network", 'proxy = "socks5://a:secret@b:1"', 'proxy "socks5://***@b:1": "b" is no IP'),
        ("network", f'peers = "{PEER}"', "a list of at most 32 multiaddrs"),
        ("network", "peers = [5]", "a list of at most 32 multiaddrs"),
        ("network", 'peers = ["192.0.2.1:60000"]', '192.0.2.1:60000": it must start with "/"'),
        ("network", f"peers = {[PEER] * 33}", "a list of at most 32 multiaddrs"),
        ("network", "connections_per_address = 10001", "a whole number from 1 to 10000"),
        ("node", "devices = 0", "a whole number from 1 to 10000"),
        ("node", "devices = 10001", "a whole number from 1 to 10000"),
        ("node", 'devices = "1000"', '"1000" (text in quotes)'),
        ("node", "subscribers = 0", "a whole number from 1 to 10000"),
        ("node", "subscribers = 1e3", "a number with a fraction"),
        ("appearance", 'theme = "Dark"', '"system", "light", "dark" or "high-contrast"'),
        ("appearance", "density = 1", '"comfortable" or "compact"'),
        ("appearance", "text_size = 84", "a whole number from 85 to 200"),
        ("appearance", "text_size = 201", "a whole number from 85 to 200"),
        ("notifications", "preview = 1", "true or false"),
        ("notifications", 'enabled = "yes"', "true or false"),
        ("notifications", "mentions_when_muted = 1", "true or false"),
        ("desktop", 'tray = "yes"', "true or false"),
        ("desktop", "close_to_tray = true", '"ask", "yes" or "no"'),
        ("node", "blobs_mb = 0", "a whole number from 1 to 100000"),
        ("node", "blob_days = 0", "a whole number from 1 to 3650"),
        ("privacy", "fetch_pictures_below_mb = 11", "a whole number from 0 to 10"),
        ("privacy", "lock_after = 15", '"off", "5", "15" or "60"'),
        ("storage", "files_megabytes = 9", "a whole number from 100 to 1000000"),
        ("privacy", "confirm_links = 0", "true or false"),
        ("privacy", "ask_for_updates = 1", "true or false"),
        ("privacy", "typing = 1", "true or false"),
        ("privacy", 'presence = "no"', "true or false"),
        ("storage", 'key = "cloud"', '"keyring" or "file"'),
        ("log", 'level = "loud"', '"debug", "info", "warning" or "error"'),
        ("log", "max_bytes = 9999", "a whole number from 10000 to 100000000"),
        ("log", "keep_files = 0", "a whole number from 1 to 100"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_key_and_what_is_allowed(
    section: str, line: str, expected: str
) -> None:
    text = complaint(f"[{section}]\n{line}\n")
    key = line.split(" ", 1)[0]
    assert text.startswith(f"settings.toml:2: [{section}] {key}: ")
    assert expected in text
    assert "\n" not in text


@pytest.mark.parametrize("minimum_and_maximum", [("port", 0, 65_535), ("shards", 1, 1024)])
def test_both_ends_of_a_range_are_allowed(minimum_and_maximum: tuple[str, int, int]) -> None:
    name, *ends = minimum_and_maximum
    for value in ends:
        settings = parse_settings(f"[network]\n{name} = {value}\n", FILE)
        assert getattr(settings.network, name) == value


def test_broken_toml_is_said_to_be_so_with_its_line() -> None:
    assert "is not TOML" in complaint("[network]\nport = \n")
    assert "line 2" in complaint("[network]\nport = \n")


def test_nesting_without_end_is_refused_in_words() -> None:
    assert "is not TOML" in complaint("x = " + "[" * 20_000)


def test_foreign_bytes_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"[network]\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"settings\.toml:2: is not UTF-8"):
        load_settings(path)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xef\xbb\xbf[network]\r\nport = 5\r\n")
    assert load_settings(path).network.port == 5


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 256 KiB"):
        load_settings(path)


def test_a_directory_in_its_place_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(str(tmp_path))):
        load_settings(tmp_path)


def test_a_strange_value_is_cut_and_kept_on_one_line() -> None:
    text = complaint('[storage]\nkey = "' + "\\n" + "x" * 10_000 + '"\n')
    assert "\n" not in text
    assert len(text) < 300


@given(st.text())
def test_any_text_gives_settings_or_one_line(text: str) -> None:
    outcome = outcome_of(text)
    assert isinstance(outcome, Settings) or re.match(r"settings\.toml[^\n]*\Z", outcome)


toml_scalars = st.one_of(
    st.booleans().map(lambda value: "true" if value else "false"),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=True).map(str),
    st.sampled_from(['""', '"file"', "[]", "[[]]", "{}", "1979-05-27", "07:32:00", "''"]),
)


@given(
    section=st.sampled_from([name for name, _ in sections_of(DEFAULTS)] + ["other"]),
    key=st.sampled_from(["port", "peers", "theme", "key", "level", "keep_files", "enabled", "odd"]),
    value=toml_scalars,
)
def test_any_value_gives_settings_within_bounds_or_a_complaint_that_names_the_key(
    section: str, key: str, value: str
) -> None:
    outcome = outcome_of(f"[{section}]\n{key} = {value}\n")
    if isinstance(outcome, str):
        assert key in outcome or section == "other" or "is not TOML" in outcome
    else:
        declared = find_key(section, key)
        assert declared is not None
        found = getattr(dict(sections_of(outcome))[section], key)
        assert type(found) is type(declared.default)


@pytest.mark.parametrize(
    ("mode", "meant"),
    [("ours", Mode.MIXED), ("batch", Mode.BATCH), ("interactive", Mode.INTERACTIVE)],
)
def test_one_to_one_conversations_go_out_as_chosen(mode: str, meant: Mode) -> None:
    text = f'[network]\nmvds_mode = "{mode}"\nmvds_wire = "draft"\n'
    config = mvds_config(parse_settings(text, FILE).network)
    assert (config.mode, config.generation) == (meant, WireGeneration.DRAFT)
    assert config.seen_again_ms == PAIR_CONFIG.seen_again_ms


def read(text: str, at: Path) -> ReadSettings:
    file = at / "settings.toml"
    file.write_text(text)
    file.chmod(0o600)
    return load_what_is_right(file)


def test_a_wrong_line_counts_as_if_it_were_not_there_and_is_said(tmp_path: Path) -> None:
    found = read(
        '[appearance]\ntheme = "pink"\ntext_size = 120\n[log]\nlevle = "debug"\n', tmp_path
    )
    assert found.settings.appearance.theme == "system"
    assert found.settings.appearance.text_size == 120
    assert [each.key for each in found.complaints] == ["[appearance] theme", "[log] levle"]
    assert found.complaints[0].place.endswith("settings.toml:2")
    odd = read('paint = 1\nlog = 3\n[storage]\nkey = "file"\n', tmp_path)
    assert odd.settings.storage.key == "file"
    assert [each.key for each in odd.complaints] == ["paint", "log"]


@pytest.mark.parametrize(
    "text",
    [
        '[network]\nproxy = "somewhere"\n',
        '[network]\nproxi = "socks5://127.0.0.1:9050"\n',
        '[netwrok]\nproxy = "socks5://127.0.0.1:9050"\n',
        'proxy = "socks5://127.0.0.1:9050"\n',
        'network = "none"\n',
        "[network]\ndiscovery = 0\n",
        '[network]\nlisten_host = "localhost"\n',
        '[privacy]\npresence = "no"\n',
        '[storage]\nproxy = "socks5://127.0.0.1:9050"\n',
        "[notifications]\npreveiw = false\n",
        '[notifications]\nmentions_when_muted = "no"\n',
        '[privacy]\nfetch_pictures_below_mb = "0"\n',
        "[privacy]\nlock_after = 15\n",
        '[privacy]\nlock_with_screen = "yes"\n',
        "[privacy]\nPRESENCE = false\n",
        "[PRIVACY]\npresence = false\n",
        "[security]\npresence = false\n",
        "[network]\nmdns = false\n",
        '[network]\nsocks5_proxy = "socks5://127.0.0.1:9050"\n',
        '[storage]\nkeep_days = "0"\n',
        '[network]\ncluster = "7"\n',
        "[network]\nclustr = 7\n",
    ],
)
def test_a_line_that_may_protect_is_never_left_out(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        read(text, tmp_path)


@pytest.mark.parametrize(
    "line",
    ['[network]\nproxy = ["socks5://me:hush@127.0.0.1:9050"]', '[delivery]\nkey = {a = "hush"}'],
)
def test_no_complaint_repeats_a_secret_in_a_list_or_a_table(line: str) -> None:
    assert "hush" not in complaint(line)


@pytest.mark.parametrize("text", ["[network", "\x00", "a = 1\na = 2\n"])
def test_a_file_that_is_no_settings_file_is_refused_whole(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        read(text, tmp_path)


def tolerant_outcome_of(text: str) -> Settings | str:
    try:
        found = read_text(text, FILE)
    except SettingsError as error:
        return str(error)
    return str(found.complaints[0]) if found.complaints else found.settings


@given(st.text(max_size=200))
def test_what_is_refused_strictly_is_complained_of_or_refused(text: str) -> None:
    assert tolerant_outcome_of(text) == outcome_of(text)
