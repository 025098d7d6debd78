"""What the window may ask of addresses before it hands them to the engine."""

from chat_app.network_control import problem_of
from engine.core.errors import ConfigError


def store_problem(address: str) -> ConfigError | None:
    """Why a text is no address of a Store; the rules are those of service nodes."""
    return problem_of("service_nodes", [address])
