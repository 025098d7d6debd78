"""Print what a package is made of, as CycloneDX 1.6 JSON, from the lock of the runtime.

Each component has its version, its package URL and the SHA-256 of every file that the lock allows;
one that only some systems need says so.  Nothing is looked up, so the same lock gives the same
text, whatever is installed where this runs.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from scripts.release import ROOT, date_of, version

LOCK = Path("requirements") / "runtime.txt"
_ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\\n]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
BUILDERS = frozenset({"hatchling", "pathspec", "pluggy", "trove-classifiers"})
"""In the lock because they make the project's own metadata; no package holds them."""


def components(lock: str) -> Iterator[Mapping[str, object]]:
    """One for each package of a lock.  Raises ValueError: a line that is not understood."""
    for entry in lock.replace("\\\n", " ").splitlines():
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        head, *_ = entry.split("--hash", maxsplit=1)
        found, hashes = _ENTRY.match(head.strip()), _HASH.findall(entry)
        if found is None or not hashes:
            raise ValueError(f"not a line of a lock: {entry[:80]}")
        name = re.sub(r"[-_.]+", "-", found[1]).lower()
        if name in BUILDERS:
            continue
        made: dict[str, object] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{found[2]}",
            "name": name,
            "version": found[2],
            "purl": f"pkg:pypi/{name}@{found[2]}",
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": f"pkg:pypi/{name}@{found[2]}",
                    "hashes": [{"alg": "SHA-256", "content": digest} for digest in hashes],
                }
            ],
        }
        if found[3]:
            made["properties"] = [{"name": "causerie:only-where", "value": found[3].strip()}]
        yield made


def bill(lock: str, *, name: str, number: str, time_s: int) -> dict[str, object]:
    parts = list(components(lock))
    own = f"pkg:generic/{name}@{number}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + lock)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time_s, tz=UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": number,
                "purl": own,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def main() -> int:
    lock = (ROOT / LOCK).read_text(encoding="utf-8")
    made = bill(lock, name="causerie", number=version(), time_s=date_of(ROOT))
    json.dump(made, sys.stdout, indent=2, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
