"""The style sheet of the standard controls: buttons, fields, menus, scroll bars, tool tips.

Kinds are dynamic properties (``button.setProperty("kind", "primary")``), so that a widget says
what it is and never how it looks.  Whatever is drawn by hand reads the theme itself.
"""

from PySide6.QtGui import QColor

from ui.theme.colours import Colours
from ui.theme.metrics import SHADOW_REACH, Metrics, Radius, Spacing
from ui.theme.typography import Typeface, TypeScale


def _hex(colour: QColor) -> str:
    return colour.name(QColor.NameFormat.HexRgb)


def _px(face: Typeface) -> str:
    return f"font-size: {face.font.pixelSize()}px"


def _push_buttons(c: Colours, type_: TypeScale, m: Metrics) -> str:
    small, body = _px(type_.small), _px(type_.body)
    radius, focus = m.gap(Radius.BUTTON), _hex(c.focus)
    return f"""
QPushButton {{
  {small}; font-weight: 600; color: {_hex(c.ink)}; background: {_hex(c.surface)};
  border: 1px solid {_hex(c.line2)}; border-radius: {radius}px;
  min-height: {m.scaled(28)}px; padding: 0 {m.gap(Spacing.MEDIUM)}px; outline: none;
}}
QPushButton:hover {{ background: {_hex(c.hover)}; }}
QPushButton:pressed {{ background: {_hex(c.accentSoft)}; }}
QPushButton:checked {{ background: {_hex(c.accentSoft)}; border-color: {_hex(c.accent)}; }}
QPushButton:focus {{ border: 2px solid {focus}; }}
QPushButton:disabled {{ color: {_hex(c.ink3)}; border-color: {_hex(c.line)}; }}
QPushButton[kind="primary"] {{
  color: {_hex(c.onAccent)}; background: {_hex(c.accent)}; border-color: {_hex(c.accent)};
}}
QPushButton[kind="primary"]:hover {{
  background: {_hex(c.accentHover)}; border-color: {_hex(c.accentHover)};
}}
QPushButton[kind="primary"]:focus {{ border: 2px solid {_hex(c.ink)}; }}
QPushButton[kind="primary"]:disabled {{
  color: {_hex(c.ink3)}; background: {_hex(c.surface2)}; border-color: {_hex(c.line)};
}}
QPushButton[kind="warning"] {{ color: {_hex(c.warn)}; border-color: {_hex(c.warnLine)}; }}
QPushButton[kind="danger"] {{ color: {_hex(c.danger)}; border-color: {_hex(c.dangerLine)}; }}
QPushButton[kind="ghost"] {{
  color: {_hex(c.ink2)}; background: transparent; border-color: transparent;
}}
QPushButton[kind="ghost"]:focus, QPushButton[kind="danger"]:focus,
QPushButton[kind="warning"]:focus {{ border: 2px solid {focus}; }}
QPushButton[kind="ghost"]:hover {{ background: {_hex(c.hover)}; }}
QPushButton[extent="big"] {{
  {body}; min-height: {m.scaled(38)}px; padding: 0 {m.gap(18)}px; border-radius: {m.gap(11)}px;
}}
QPushButton[extent="small"] {{
  {_px(type_.caption)}; min-height: {m.scaled(24)}px; padding: 0 {m.gap(10)}px;
  border-radius: {m.gap(8)}px;
}}
QPushButton[extent="tiny"] {{
  {_px(type_.caption)}; min-height: {m.scaled(14)}px; padding: 0 {m.gap(6)}px;
  border-radius: {m.gap(6)}px;
}}
"""


def _tool_buttons(c: Colours, m: Metrics) -> str:
    radius, focus = m.gap(Radius.BUTTON), _hex(c.focus)
    return f"""
QToolButton {{
  border: 2px solid transparent; border-radius: {radius}px; background: transparent;
}}
QToolButton:hover {{ background: {_hex(c.hover)}; }}
QToolButton:pressed, QToolButton:checked {{ background: {_hex(c.accentSoft)}; }}
QToolButton:focus {{ border-color: {focus}; }}
QToolButton::menu-indicator {{ image: none; width: 0; }}
QToolButton[kind="send"] {{ background: {_hex(c.accent)}; border-radius: {m.gap(11)}px; }}
QToolButton[kind="send"]:hover {{ background: {_hex(c.accentHover)}; }}
QToolButton[kind="send"]:focus {{ border-color: {_hex(c.ink)}; }}
QToolButton[kind="send"]:disabled {{ background: {_hex(c.surface2)}; }}
"""


def _fields(c: Colours, type_: TypeScale, m: Metrics) -> str:
    dark = c.ink.lightness() > c.canvas.lightness()
    return f"""
QLineEdit, QPlainTextEdit[kind="field"] {{
  {_px(type_.body)}; color: {_hex(c.ink)}; background: {_hex(c.surface)};
  border: 1px solid {_hex(c.line2)}; border-radius: {m.gap(Radius.BUTTON)}px;
  padding: 0 {m.gap(10)}px;
  placeholder-text-color: {_hex(c.ink3)};
  selection-background-color: {_hex(c.accent)}; selection-color: {_hex(c.onAccent)};
}}
QLineEdit {{ min-height: {m.scaled(34)}px; }}
QPlainTextEdit[kind="field"] {{ padding: {m.gap(10)}px {m.gap(Spacing.MEDIUM)}px; }}
QPlainTextEdit[kind="message"] {{
  {_px(type_.body)}; color: {_hex(c.ink)}; background: {_hex(c.surface2 if dark else c.surface)};
  border: 1px solid {_hex(c.line2)}; border-radius: {m.gap(Radius.ROW)}px; padding: 0;
  placeholder-text-color: {_hex(c.ink3)};
  selection-background-color: {_hex(c.accent)}; selection-color: {_hex(c.onAccent)};
}}
QPlainTextEdit[kind="message"]:focus {{ border-color: {_hex(c.focus)}; }}
QPlainTextEdit[kind="message"]:disabled {{ border-color: {_hex(c.line)}; }}
QLineEdit:focus {{ border: 2px solid {_hex(c.focus)}; padding: 0 {m.gap(10) - 1}px; }}
QPlainTextEdit[kind="field"]:focus {{
  border: 2px solid {_hex(c.focus)};
  padding: {m.gap(10) - 1}px {m.gap(Spacing.MEDIUM) - 1}px;
}}
QLineEdit[kind="search"] {{
  {_px(type_.label)}; background: {_hex(c.surface2)}; border-color: {_hex(c.line)};
  border-radius: {m.gap(Radius.SEARCH)}px; min-height: {m.scaled(32)}px;
}}
QLineEdit[kind="search"]:focus {{ border: 2px solid {_hex(c.focus)}; }}
QComboBox, QDateEdit {{
  {_px(type_.label)}; color: {_hex(c.ink)}; background: {_hex(c.surface)};
  border: 1px solid {_hex(c.line2)}; border-radius: {m.gap(Radius.BUTTON)}px;
  padding: 0 {m.gap(10)}px; min-height: {m.scaled(28)}px;
}}
QComboBox:focus, QDateEdit:focus {{ border: 2px solid {_hex(c.focus)}; }}
QComboBox::drop-down, QDateEdit::drop-down {{ border: none; width: {m.scaled(20)}px; }}
QComboBox QAbstractItemView {{
  color: {_hex(c.ink)}; background: {_hex(c.surface)}; border: 1px solid {_hex(c.line2)};
  border-radius: {m.gap(Radius.BUTTON)}px; padding: {m.gap(Spacing.TINY)}px; outline: none;
}}
QComboBox QAbstractItemView::item {{
  min-height: {m.scaled(28)}px; padding: 0 {m.gap(6)}px;
  border: 1px solid transparent; border-radius: {m.gap(Radius.GROUPED)}px;
}}
QComboBox QAbstractItemView::item:selected {{
  background: {_hex(c.selected)}; color: {_hex(c.ink)}; border-color: {_hex(c.focus)};
}}
"""


def _floating(c: Colours, type_: TypeScale, m: Metrics) -> str:
    return f"""
QMenu {{
  background: {_hex(c.surface)}; color: {_hex(c.ink)}; border: 1px solid {_hex(c.line)};
  padding: {m.gap(Spacing.SMALL)}px; border-radius: {m.gap(Radius.ROW)}px; {_px(type_.label)};
}}
QMenu[floats="yes"] {{ margin: {SHADOW_REACH}px; }}
QMenu::item {{
  padding: {m.gap(Spacing.SMALL)}px {m.gap(Spacing.EDGE)}px {m.gap(Spacing.SMALL)}px
    {m.gap(Spacing.SNUG)}px;
  border-radius: {m.gap(Radius.GROUPED)}px; border: 1px solid transparent;
}}
QMenu::item:selected {{
  background: {_hex(c.selected)}; color: {_hex(c.ink)}; border-color: {_hex(c.focus)};
}}
QMenu::item:disabled {{ color: {_hex(c.ink3)}; }}
QMenu::icon {{ padding-left: {m.gap(Spacing.SNUG)}px; }}
QMenu::separator {{ height: 1px; background: {_hex(c.line)}; margin: {m.gap(4)}px; }}
QToolTip {{
  background: {_hex(c.surface)}; color: {_hex(c.ink)}; border: 1px solid {_hex(c.line2)};
  padding: {m.gap(Spacing.TINY)}px {m.gap(Spacing.SNUG)}px; {_px(type_.caption)};
  border-radius: {m.gap(Radius.GROUPED)}px;
}}
"""


def _sections(c: Colours, m: Metrics) -> str:
    return f"""
QListWidget[kind="sections"] {{ background: transparent; border: none; outline: none; }}
QListWidget[kind="sections"]::item {{
  min-height: {m.scaled(34)}px; padding-left: {m.gap(8)}px; margin-bottom: 2px;
  border-radius: {m.gap(Radius.SEARCH)}px; border: 2px solid transparent;
}}
QListWidget[kind="sections"]::item:hover {{ background: {_hex(c.hover)}; }}
QListWidget[kind="sections"]::item:selected {{
  background: {_hex(c.selected)}; color: {_hex(c.accentInk)};
}}
QListWidget[kind="sections"]::item:selected:focus {{ border-color: {_hex(c.focus)}; }}
"""


def _facts(c: Colours, type_: TypeScale, m: Metrics) -> str:
    return f"""
QTableWidget[kind="facts"] {{
  background: transparent; color: {_hex(c.ink)}; outline: none; border: 1px solid {_hex(c.line)};
  border-radius: {m.gap(Radius.BUTTON)}px; selection-background-color: transparent;
}}
QTableWidget[kind="facts"]:focus {{ border-color: {_hex(c.focus)}; }}
QTableWidget[kind="facts"]::item {{ padding: 0 {m.gap(6)}px; border: none; }}
QTableWidget[kind="facts"]::item:hover {{ background: {_hex(c.hover)}; }}
QTableWidget[kind="facts"]::item:selected {{
  background: {_hex(c.selected)}; color: {_hex(c.ink)};
}}
QTableWidget[kind="facts"] QHeaderView {{ background: transparent; border: none; }}
QTableWidget[kind="facts"] QHeaderView::section {{
  background: transparent; color: {_hex(c.ink2)}; border: none; {_px(type_.caption)};
  border-bottom: 1px solid {_hex(c.line)}; padding: {m.gap(4)}px {m.gap(8)}px;
}}
"""


def _calendar(c: Colours, type_: TypeScale, m: Metrics) -> str:
    return f"""
QCalendarWidget QWidget {{ alternate-background-color: {_hex(c.surface2)}; }}
QCalendarWidget #qt_calendar_navigationbar {{
  background: {_hex(c.surface2)}; border-radius: {m.gap(Radius.BUTTON)}px;
}}
QCalendarWidget QToolButton {{
  {_px(type_.body)}; font-weight: 600; color: {_hex(c.ink)};
  min-height: {m.scaled(30)}px; padding: 0 {m.gap(Spacing.SNUG)}px;
}}
QCalendarWidget QAbstractItemView {{
  {_px(type_.label)}; background: {_hex(c.surface)}; color: {_hex(c.ink)}; outline: none;
  border: 1px solid transparent;
  selection-background-color: {_hex(c.accent)}; selection-color: {_hex(c.onAccent)};
}}
QCalendarWidget QAbstractItemView:focus {{ border-color: {_hex(c.focus)}; }}
QCalendarWidget QAbstractItemView:disabled {{ color: {_hex(c.ink3)}; }}
"""


def _scroll_bars(c: Colours, m: Metrics) -> str:
    width = m.gap(10)
    return f"""
QScrollBar:vertical {{ background: transparent; width: {width}px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: {width}px; margin: 0; }}
QScrollBar::handle {{ background: {_hex(c.thread)}; border-radius: 3px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: {m.gap(Spacing.WIDE)}px; }}
QScrollBar::handle:horizontal {{ min-width: {m.gap(Spacing.WIDE)}px; }}
QScrollBar::handle:hover {{ background: {_hex(c.line2)}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSplitter::handle {{ background: {_hex(c.line)}; }}
"""


def stylesheet_of(colours: Colours, type_: TypeScale, metrics: Metrics) -> str:
    return (
        _push_buttons(colours, type_, metrics)
        + _tool_buttons(colours, metrics)
        + _fields(colours, type_, metrics)
        + _floating(colours, type_, metrics)
        + _sections(colours, metrics)
        + _facts(colours, type_, metrics)
        + _calendar(colours, type_, metrics)
        + _scroll_bars(colours, metrics)
    )
