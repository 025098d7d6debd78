"""The bill of materials says what the lock says, and is the same wherever it is made."""

import json
import re
from typing import Any

import pytest

from scripts.bill_of_materials import BUILDERS, LOCK, bill, components
from scripts.release import ROOT

TEXT = (ROOT / LOCK).read_text(encoding="utf-8")
HASH = "0" * 64


def made() -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(
        json.dumps(bill(TEXT, name="causerie", number="1.2.3", time_s=0))
    )
    return whole


def test_every_package_of_the_lock_is_in_it_with_its_hashes() -> None:
    parts = made()["components"]
    pinned = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", TEXT, flags=re.MULTILINE))
    assert {(part["name"], part["version"]) for part in parts} == {
        (name, number) for name, number in pinned.items() if name not in BUILDERS
    }
    assert set(pinned) >= BUILDERS
    digests = [
        one["content"]
        for part in parts
        for place in part["externalReferences"]
        for one in place["hashes"]
    ]
    assert len(digests) > len(parts)
    assert all(digest in TEXT for digest in digests)


def test_it_is_cyclonedx_and_alike_every_time() -> None:
    first = made()
    assert first == made()
    assert (first["bomFormat"], first["specVersion"], first["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", first["serialNumber"])
    references = {part["bom-ref"] for part in first["components"]}
    assert len(references) == len(first["components"])
    assert set(first["dependencies"][0]["dependsOn"]) == references


@pytest.mark.parametrize(
    "line", [f"a>=1 --hash=sha256:{HASH}", "a==1", "-r other.txt", f"a --hash=sha256:{HASH}"]
)
def test_what_is_no_line_of_a_lock_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of a lock"):
        list(components(line))
