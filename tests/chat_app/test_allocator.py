"""What pictures took goes back to the system: seen in a process of its own."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import sys, threading
from pathlib import Path
from chat_app.allocator import return_large_blocks

def private_mib():
    lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024

if sys.argv[1] == "arranged":
    assert return_large_blocks()
before = private_mib()
kept = []

def make_small():
    for size in (30, 12, 6, 3, 1) * 3:
        pixels = bytearray(size * 1024 * 1024)
        pixels[:] = bytes(len(pixels))
        kept.append(bytes(20_000))  # what was made of it, which lies above
        del pixels

threads = [threading.Thread(target=make_small) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(private_mib() - before)
"""


def test_large_blocks_that_were_freed_are_not_kept() -> None:
    def kept_mib(how: str) -> float:
        command = [sys.executable, "-c", PROGRAM, how]
        done = subprocess.run(
            command, cwd=REPOSITORY, check=True, text=True, stdout=subprocess.PIPE
        )
        return float(done.stdout)

    assert kept_mib("arranged") < 12
