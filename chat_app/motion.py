"""Whether small movements are wanted: by the settings, and by what the desktop says of itself.

On Linux the settings portal is asked, once: the agreed key and those of GNOME and KDE, which older
portals pass on.  Windows is asked directly.  Qt does not tell what macOS says, so there, and where
nobody answers, only the setting counts.
"""

import sys
from typing import Final

from ui.motion import allow_motion

ANSWER_S: Final = 2.0
_APPEARANCE: Final = "org.freedesktop.appearance"
_GNOME: Final = "org.gnome.desktop.interface"
_KDE: Final = "org.kde.kdeglobals.KDE"
_GET_CLIENT_AREA_ANIMATION: Final = 0x1042


async def begin_motion(choice: str, address: str) -> None:
    """``choice`` of the settings; ``address`` of the session bus, or "" for none."""
    if choice == "off":
        return
    if sys.platform == "win32":
        allow_motion(_windows_moves())
    else:
        allow_motion(not address or not await wants_less(address))


async def wants_less(address: str) -> bool:
    """Whether the desktop on this bus says so."""
    from jeepney import DBusAddress, new_method_call  # noqa: PLC0415 - after the first paint

    from chat_app.session_bus import BusError, SessionBus  # noqa: PLC0415 - likewise

    portal = DBusAddress(
        "/org/freedesktop/portal/desktop",
        bus_name="org.freedesktop.portal.Desktop",
        interface="org.freedesktop.portal.Settings",
    )
    try:
        bus = await SessionBus.connect(address)
    except BusError:
        return False
    try:
        wanted = [_APPEARANCE, _GNOME, _KDE]
        call = new_method_call(portal, "ReadAll", "as", (wanted,))
        (said, *_) = await bus.call(call, ANSWER_S) or ({},)
    except BusError:
        return False
    finally:
        await bus.close()
    return says_less(said)


def says_less(said: object) -> bool:
    """``said``: the portal's answer, by namespace and key, with each value beside its type."""
    return (
        _value(said, _APPEARANCE, "reduced-motion") == 1
        or _value(said, _GNOME, "enable-animations") is False
        or str(_value(said, _KDE, "AnimationDurationFactor")) in {"0", "0.0"}
    )


def _value(said: object, namespace: str, key: str) -> object:
    keys = said.get(namespace) if isinstance(said, dict) else None
    found = keys.get(key) if isinstance(keys, dict) else None
    is_variant = isinstance(found, tuple) and len(found) == 2  # noqa: PLR2004 - type and value
    return found[1] if is_variant and isinstance(found, tuple) else None


def _windows_moves() -> bool:
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - only there

        moves = ctypes.c_int(1)
        asked = ctypes.windll.user32.SystemParametersInfoW(
            _GET_CLIENT_AREA_ANIMATION, 0, ctypes.byref(moves), 0
        )
        return not asked or bool(moves.value)
    return True
