"""Checks and cleans the user's input; raises ConfigError with a sentence for the user."""

from engine.core.content import MAX_TEXT_BYTES, Text, clean_name
from engine.core.errors import ConfigError


def usable_name(name: str) -> str:
    try:
        return clean_name(name)
    except ValueError as error:
        raise ConfigError(f"This name cannot be used: {error}.") from error


def usable_text(text: str) -> Text:
    size = len(text.encode("utf-8", "replace"))
    if not text.strip():
        raise ConfigError("A message needs some text.")
    if size > MAX_TEXT_BYTES:
        raise ConfigError(
            f"This message has {size} bytes; at most {MAX_TEXT_BYTES} can be sent at once."
        )
    return Text(text=text.encode("utf-8", "replace").decode())
