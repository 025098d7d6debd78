"""Whether this profile records deliveries, where, and under which key.

The settings say so, or the command line for one run.  A key is made when there is none, kept in the
settings, and shown on the terminal, so that others of a test group can be given it.
"""

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from chat_app.compose import unix_now_ms
from chat_app.paths import ProfilePaths
from chat_app.settings import Settings
from chat_app.settings_file import change_setting
from engine.delivery.log_writer import Limits
from engine.delivery.pseudonym import KEY_BYTES, key_text, parse_key
from engine.delivery.recorder import Recorder, RecorderSettings

MEGABYTE: Final = 1_000_000
FILES: Final = 4
"""Among which the space is shared, so that what goes when it is full is a part of it."""


class RecordOptions(Struct, frozen=True, kw_only=True):
    """What the command line said; ``directory`` None: in the profile, ``key`` None: settings."""

    wanted: bool = False
    directory: Path | None = None
    key: str | None = None


def delivery_directory(paths: ProfilePaths) -> Path:
    return paths.directory / "delivery"


def make_recorder(
    paths: ProfilePaths, settings: Settings, options: RecordOptions
) -> Recorder | None:
    """None if nothing is to be recorded.  Raises ConfigError."""
    chosen = settings.delivery
    if not (options.wanted or options.key is not None or chosen.record):
        return None
    directory = options.directory or delivery_directory(paths)
    key = parse_key(options.key or chosen.key or _made_key(paths, directory))
    total = chosen.max_megabytes * MEGABYTE
    return Recorder(
        RecorderSettings(
            directory=directory,
            key=key,
            app_version=importlib.metadata.version("causerie")[:32],
            network=f"waku/{settings.network.cluster}",
            limits=Limits(file_bytes=total // FILES, total_bytes=total),
        ),
        now_ms=unix_now_ms,
        random_bytes=os.urandom,
    )


def _made_key(paths: ProfilePaths, directory: Path) -> str:
    key = key_text(os.urandom(KEY_BYTES))
    change_setting(paths.settings_file, "delivery", "key", key)
    sys.stderr.write(
        f"causerie: deliveries are recorded in {directory}. Others whose records are to be compared"
        f" need the same key, in a file for --record-delivery-key-file: {key}\n"
    )
    return key
