"""The window's network page on the running network and the settings file."""

from pathlib import Path

from msgspec import Struct

from chat_app.network_control import NetworkControl, problem_of
from chat_app.settings_file import change_setting
from ui.network_choice import NetworkChoice


def store_problem(address: str) -> str:
    """Why a text is no address of a Store, as a sentence; the rules are those of service nodes."""
    return _sentence(problem_of("service_nodes", [address]))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


class WindowNetwork(Struct, frozen=True):
    """A ``ui.network_choice.NetworkPort``: in force first, and then written down."""

    control: NetworkControl
    path: Path

    def chosen(self) -> NetworkChoice:
        settings = self.control.settings
        return NetworkChoice(
            role=settings.role,
            service_nodes=settings.service_nodes,
            discovery=settings.discovery,
            proxy=settings.proxy,
        )

    def problem(self, choice: NetworkChoice) -> str:
        return _sentence(
            problem_of("role", choice.role)
            or problem_of("service_nodes", list(choice.service_nodes))
            or problem_of("proxy", choice.proxy)
        )

    async def change(self, choice: NetworkChoice) -> None:
        before = self.chosen()
        await self.control.change(choice.role, choice.service_nodes)
        if choice.role != before.role:
            change_setting(self.path, "network", "role", choice.role)
        if choice.service_nodes != before.service_nodes:
            change_setting(self.path, "network", "service_nodes", choice.service_nodes)
        if choice.discovery != before.discovery:
            change_setting(self.path, "network", "discovery", choice.discovery)
        if choice.proxy != before.proxy:
            change_setting(self.path, "network", "proxy", choice.proxy)
        self.control.keep_for_the_next_start(discovery=choice.discovery, proxy=choice.proxy)
