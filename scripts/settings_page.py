"""Write docs/settings.md from the declaration of the settings (chat_app/settings.py)."""

from pathlib import Path

from chat_app.settings_file import page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
