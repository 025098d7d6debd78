"""Records rows as fast as it can until it is killed; says after each commit how far it is."""

import os
import sys
import time
from pathlib import Path

from engine.delivery.log_writer import Limits, LogWriter, Owner
from engine.delivery.rows import EventRow, Rows

if __name__ == "__main__":
    writer = LogWriter(
        Path(sys.argv[1]),
        Owner(participant="a" * 16, key_id="b" * 16, app_version="1", network="test"),
        limits=Limits(),
        now_ms=lambda: time.time_ns() // 1_000_000,
        random_bytes=os.urandom,
    )
    written = 0
    while True:
        events = [EventRow(kind="started", at_ms=number) for number in range(written, written + 50)]
        writer.append(Rows(events=events))
        written += len(events)
        sys.stdout.write(f"{written}\n")
        sys.stdout.flush()
