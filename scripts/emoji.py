"""Write ``assets/emoji.txt``, what the emoji picker knows, from emojibase-data.

Run it with the folder of the unpacked npm package ``emojibase-data`` (MIT); its names and keywords
are Unicode's (Unicode License v3), and ``assets/emoji-licences.txt`` has both licences.  The file
has one line for each emoji in Unicode's order, in columns divided by tabs: the emoji, its name, the
version of Unicode's emoji that brought it, names to write between colons, further words to search
for, and for what has skin tones the same with the lightest one and the version of that.
``# group`` begins a group.
"""

import sys
from pathlib import Path

import msgspec

ASSET = Path(__file__).resolve().parent.parent / "assets" / "emoji.txt"
LIGHT_TONE = 1
COMPONENTS = 2
"""The group of skin tones and hair, which are no emoji by themselves."""
IN_COLOUR = 1
"""The type of an emoji that needs no selector to be drawn in colour."""


class Skin(msgspec.Struct, kw_only=True):
    emoji: str
    type: int
    version: float
    tone: int | list[int]


class Record(msgspec.Struct, kw_only=True):
    emoji: str
    type: int
    version: float
    label: str
    hexcode: str
    group: int | None = None
    order: int = 0
    tags: list[str] = []
    skins: list[Skin] = []


Shortcodes = dict[str, str | list[str]]


def sequence(record: Record | Skin) -> str:
    """Fully qualified: with the selectors that ask for colour, and none that does not."""
    bare = record.emoji.replace("\ufe0f", "")
    return bare if len(bare) == 1 and record.type == IN_COLOUR else record.emoji


def codes_of(hexcode: str, sources: list[Shortcodes]) -> list[str]:
    codes: list[str] = []
    for source in sources:
        found = source.get(hexcode, [])
        codes += [found] if isinstance(found, str) else found
    return list(dict.fromkeys(codes))


def line(record: Record, sources: list[Shortcodes]) -> str:
    codes = codes_of(record.hexcode, sources)
    known = {*record.label.split(), *codes}
    words = [tag for tag in record.tags if tag not in known]
    columns = [
        sequence(record),
        record.label,
        f"{record.version:g}",
        " ".join(codes),
        ",".join(words),
    ]
    for skin in record.skins:
        if skin.tone == LIGHT_TONE:
            columns += [sequence(skin), f"{skin.version:g}"]
    return "\t".join(columns)


def table(folder: Path) -> str:
    def read(name: str) -> bytes:
        return (folder / name).read_bytes()

    records = msgspec.json.decode(read("en/data.json"), type=list[Record])
    groups = msgspec.json.decode(read("meta/groups.json"), type=dict[str, dict[str, object]])
    sources = [
        msgspec.json.decode(read(f"en/shortcodes/{name}.json"), type=Shortcodes)
        for name in ("github", "emojibase")
    ]
    lines: list[str] = []
    for number, name in groups["groups"].items():
        members = [each for each in records if each.group == int(number) != COMPONENTS]
        if members:
            lines.append(f"# {name}")
            lines += [line(each, sources) for each in sorted(members, key=lambda r: r.order)]
    return "\n".join(lines) + "\n"


def main() -> None:
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and the folder
        sys.exit("usage: python -m scripts.emoji FOLDER-OF-EMOJIBASE-DATA")
    ASSET.write_text(table(Path(sys.argv[1])), encoding="utf-8")


if __name__ == "__main__":
    main()
