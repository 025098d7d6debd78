"""The sections about what one sees and hears of Causerie, and what others learn."""

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.events import IdentityView
from ui.connection_words import key_words
from ui.controls import Button, Card
from ui.desktop.autostart import AutostartPort
from ui.dialogs.group import selectable
from ui.dialogs.profile import ProfileFields
from ui.menu import Menu
from ui.settings_page.rows import (
    Bound,
    ChoiceRow,
    OnOffRow,
    PercentRow,
    SettingRow,
    SwitchRow,
)
from ui.settings_page.section import SettingsSection
from ui.settings_page.update_rows import UpdateRow
from ui.theme import MAX_TEXT_PERCENT, MIN_TEXT_PERCENT
from ui.translate import tr
from ui.update_port import UpdatePort
from ui.window.locking import Lock

_PERCENT_STEP = 10


class ProfileCard(Card):
    """Name and picture, with the buttons that a change brings."""

    def __init__(self, fields: ProfileFields) -> None:
        super().__init__("surface", "line")
        self.fields = fields
        self.save = Button(tr("Save"), kind="primary", size="small")
        self.give_up = Button(tr("Undo"), kind="ghost", size="small")
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.give_up)
        buttons.addWidget(self.save)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 18, 14)
        column.addWidget(fields)
        column.addLayout(buttons)
        self.save.clicked.connect(fields.submit)
        self.give_up.clicked.connect(fields.reread)
        fields.name.returnPressed.connect(fields.submit)
        fields.changed.connect(self._judge)
        fields.saved.connect(self._judge)
        for done in (fields.saved, self.give_up.clicked):
            done.connect(lambda *_: fields.name.setFocus())  # What had it goes away.
        self._judge()

    def _judge(self) -> None:
        is_changed = self.fields.is_changed
        self.give_up.setVisible(is_changed)
        self.save.setVisible(is_changed)
        self.save.setEnabled(self.fields.can_be_saved)


def profile_section(
    identity: Callable[[], IdentityView | None],
    fields: ProfileFields,
    lock: Lock,
) -> SettingsSection:
    """What opens the profile may have been changed since the start, by which the identity goes."""
    section = SettingsSection(
        "profile", "person", tr("Profile"), tr("What people you talk to see of you.")
    )
    card, words = ProfileCard(fields), tr("Name and picture")
    section.add_part(card, words=words, set_narrow=fields.set_narrow)
    shown = selectable("")
    kept = SettingRow(tr("Where the key lies"))
    section.add_rows(
        SettingRow(
            tr("Your fingerprint"),
            tr("Friends who compare it with you know that it is really you they talk to."),
            shown,
            below=True,
        ),
        kept,
    )

    def show() -> None:
        known = identity()
        section.setEnabled(known is not None)
        if not fields.is_changed:
            fields.reread()
        if known is None:
            return
        shown.setText(known.fingerprint)
        kept.show_hint(key_words(lock.key_storage() or known.key_storage))

    section.shown_again.connect(show)
    lock.ways_changed.connect(section.shown_again)
    show()
    return section


def appearance_section(bound: Bound) -> SettingsSection:
    section = SettingsSection(
        "appearance", "contrast", tr("Appearance"), tr("How the window looks.")
    )
    steps = sorted({MIN_TEXT_PERCENT, *range(90, MAX_TEXT_PERCENT + 1, _PERCENT_STEP)})
    section.add_rows(
        ChoiceRow(
            bound,
            ("appearance", "theme"),
            tr("Colours"),
            (
                ("system", tr("As the desktop")),
                ("light", tr("Light")),
                ("dark", tr("Dark")),
                ("high-contrast", tr("High contrast")),
            ),
        ),
        ChoiceRow(
            bound,
            ("appearance", "language"),
            tr("Language"),
            (
                ("system", tr("As the desktop")),
                ("en", tr("English")),
                ("fr", tr("French")),
            ),
        ),
        ChoiceRow(
            bound,
            ("appearance", "motion"),
            tr("Movements"),
            (("system", tr("As the desktop")), ("off", tr("None"))),
        ),
        ChoiceRow(
            bound,
            ("appearance", "density"),
            tr("Density"),
            (("comfortable", tr("Comfortable")), ("compact", tr("Compact"))),
            tr("How much room conversations and messages take."),
        ),
        PercentRow(
            bound,
            ("appearance", "text_size"),
            tr("Text size"),
            [(percent, tr("{percent} %").format(percent=percent)) for percent in steps],
            tr("Ctrl with + and - changes it, too; Ctrl with 0 is 100 %."),
        ),
    )
    return section


def notifications_section(
    bound: Bound, quiet_menu: Callable[[QWidget], Menu], autostart: AutostartPort | None
) -> SettingsSection:
    section = SettingsSection(
        "notifications",
        "bell",
        tr("Notifications"),
        tr("What the desktop is told, and what becomes of the window when you close it."),
    )
    quiet = Button(tr("Do not disturb"), icon_name="bell-off")
    section.add_rows(
        SwitchRow(
            bound,
            ("notifications", "enabled"),
            tr("Notifications"),
            tr("Tell the desktop about new messages."),
        ),
        SwitchRow(
            bound,
            ("notifications", "preview"),
            tr("Show text in notifications"),
            tr("Without it, a notification says only who wrote."),
        ),
        SwitchRow(
            bound,
            ("notifications", "mentions_when_muted"),
            tr("Mentions in muted conversations"),
            tr("Tell the desktop when a message there mentions you."),
        ),
        SettingRow(tr("Do not disturb"), tr("No notification at all, for a while."), quiet),
    )
    quiet.setMenu(quiet_menu(quiet))
    section.add_rows(*_desktop_rows(bound, autostart), heading=tr("Window and tray"))
    return section


def _desktop_rows(bound: Bound, autostart: AutostartPort | None) -> list[SettingRow]:
    rows: list[SettingRow] = [
        SwitchRow(
            bound,
            ("desktop", "tray"),
            tr("Icon in the tray"),
            tr("Where the desktop has a tray."),
        ),
        ChoiceRow(
            bound,
            ("desktop", "close_to_tray"),
            tr("When the window is closed"),
            (
                ("ask", tr("Ask me")),
                ("yes", tr("Keep running in the tray")),
                ("no", tr("Quit")),
            ),
            tr("Without a tray, Causerie ends."),
        ),
    ]
    if autostart is not None:
        rows.append(
            OnOffRow(
                tr("Start with the session"),
                tr("Causerie starts when you log in."),
                autostart.is_on,
                lambda on: autostart.switch(on=on),
            )
        )
    return rows


def privacy_section(
    bound: Bound, lock_rows: Sequence[SettingRow] = (), updates: UpdatePort | None = None
) -> SettingsSection:
    """``lock_rows``: about the passphrase, if there can be one."""
    section = SettingsSection(
        "privacy", "lock", tr("Privacy"), tr("What others learn besides your messages.")
    )
    pictures = [(0, tr("Never"))]
    pictures += [(size, tr("Up to {size} MB").format(size=size)) for size in range(1, 11)]
    section.add_rows(
        SwitchRow(
            bound,
            ("privacy", "typing"),
            tr("Tell others when I am typing"),
        ),
        SwitchRow(
            bound,
            ("privacy", "presence"),
            tr("Tell people when I am online"),
            tr(
                "What you write and acknowledge shows it all the same. Without it, what others"
                " sent while you were away may take longer to come."
            ),
        ),
        ChoiceRow(
            bound,
            ("privacy", "fetch_pictures_below_mb"),
            tr("Fetch pictures by themselves"),
            pictures,
            tr("Whoever has them learns that you are there. Without it, a click fetches each."),
        ),
        SwitchRow(
            bound,
            ("privacy", "confirm_links"),
            tr("Ask before an address is opened"),
            tr(
                "The whole address is shown first, in a form in which look-alike letters give"
                " themselves away. The site learns your network address."
            ),
        ),
    )
    if updates is not None:
        section.add_rows(UpdateRow(bound, updates), heading=tr("New versions"))
    if lock_rows:
        section.add_rows(*lock_rows, heading=tr("Passphrase and lock"))
    return section
