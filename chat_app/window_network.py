"""The window's network page on the running network and the settings file."""

from pathlib import Path

from msgspec import Struct

from chat_app.network_control import NetworkControl, problem_of
from chat_app.settings import MAX_SERVICE_NODES
from chat_app.settings_file import change_setting
from engine.core.errors import AddressError, AddressFlaw, ConfigError
from ui.network_choice import NetworkChoice


def store_problem(address: str) -> ConfigError | None:
    """Why a text is no address of a Store; the rules are those of service nodes."""
    return problem_of("service_nodes", [address])


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

    def problem(self, choice: NetworkChoice) -> ConfigError | None:
        if len(choice.service_nodes) > MAX_SERVICE_NODES:
            return AddressError(AddressFlaw.TOO_MANY, allowed=MAX_SERVICE_NODES)
        return (
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
