"""The QPalette of a theme, so that Qt's own widgets and dialogs follow it too."""

from PySide6.QtGui import QColor, QPalette

from ui.theme.colours import Colours


def _roles(colours: Colours) -> dict[QPalette.ColorRole, QColor]:
    role = QPalette.ColorRole
    return {
        role.Window: colours.panel,
        role.WindowText: colours.ink,
        role.Base: colours.surface,
        role.AlternateBase: colours.surface2,
        role.Text: colours.ink,
        role.PlaceholderText: colours.ink3,
        role.Button: colours.surface,
        role.ButtonText: colours.ink,
        role.BrightText: colours.danger,
        role.ToolTipBase: colours.surface,
        role.ToolTipText: colours.ink,
        role.Highlight: colours.accent,
        role.HighlightedText: colours.onAccent,
        role.Accent: colours.accent,
        role.Link: colours.accentInk,
        role.LinkVisited: colours.late,
        role.Light: colours.surface,
        role.Midlight: colours.hover,
        role.Mid: colours.line,
        role.Dark: colours.line2,
        role.Shadow: colours.thread,
    }


def palette_of(colours: Colours) -> QPalette:
    palette = QPalette()
    for role, colour in _roles(colours).items():
        palette.setColor(role, colour)
    for role in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
    ):
        palette.setColor(QPalette.ColorGroup.Disabled, role, colours.ink3)
    palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Highlight, colours.badgeMute)
    return palette
