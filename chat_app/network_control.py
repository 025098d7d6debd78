"""The network settings that can be changed while the program runs: the role and the service nodes.

What is chosen is judged by the rules of the settings file, put into force, and only then kept.  As
long as there is no transport (a new profile has none before it has an identity) it is only kept.
"""

from collections.abc import Sequence
from dataclasses import replace

from chat_app.settings import NetworkSettings, find_key
from engine.core.errors import AddressError, ConfigError, SettingsError, SettingsFlaw
from engine.network.node.roles import Role, RoleTransport


def problem_of(name: str, value: object) -> ConfigError | None:
    """Why a value cannot be that of ``[network] name``; None if it can."""
    key = find_key("network", name)
    if key is None:
        text = f"{name}: there is no such setting"
        return SettingsError(text, SettingsFlaw.UNKNOWN, key=f"[network] {name}")
    try:
        key.rule.read(value)
    except AddressError as error:
        return error
    except ValueError as error:
        return SettingsError(
            str(error),
            SettingsFlaw.WRONG_VALUE,
            key=f"[network] {name}",
            allowed=key.rule.allowed,
        )
    return None


def store_problem(address: str) -> ConfigError | None:
    """Why a text is no address of a Store; the rules are those of service nodes."""
    return problem_of("service_nodes", [address])


class NetworkControl:
    def __init__(self, settings: NetworkSettings) -> None:
        self._settings = settings
        self._transport: RoleTransport | None = None

    @property
    def settings(self) -> NetworkSettings:
        return self._settings

    async def _put_into_force(
        self, transport: RoleTransport, role: Role, nodes: Sequence[str]
    ) -> None:
        await transport.set_service_nodes(nodes)
        try:
            await transport.set_role(role)
        except BaseException:
            await transport.set_service_nodes(self._settings.service_nodes)
            raise

    def attach(self, transport: RoleTransport) -> None:
        self._transport = transport

    async def change(self, role: str, service_nodes: Sequence[str]) -> None:
        """Raises ConfigError, or TransportError if a role cannot be had; then nothing changes."""
        nodes = list(service_nodes)
        for name, value in (("role", role), ("service_nodes", nodes)):
            if problem := problem_of(name, value):
                raise problem
        if self._transport is not None:
            await self._put_into_force(self._transport, Role(role), nodes)
        self._settings = replace(self._settings, role=role, service_nodes=tuple(nodes))

    def keep_for_the_next_start(self, *, discovery: bool, proxy: str) -> None:
        """A transport that is made later has them; the one that runs keeps what it has.

        Raises ConfigError.
        """
        if problem := problem_of("proxy", proxy):
            raise problem
        self._settings = replace(self._settings, discovery=discovery, proxy=proxy)
