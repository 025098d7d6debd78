"""Another implementation's node in a process of its own, asked over JSON lines.

A line is one command with an id; one line with the same id answers it, in any order.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from tests.patience import PATIENCE_S

LINE_LIMIT = 4 * 1024 * 1024

Answer = dict[str, Any]


class PeerNodeError(Exception):
    """The node's own words."""


class PeerNode:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._asked = 0
        self.peer_id = ""
        self.version = ""
        self.addresses: list[str] = []

    async def run(self) -> None:
        """Hand answers to those who asked, until the process ends."""
        output = cast("asyncio.StreamReader", self._process.stdout)
        while line := await output.readline():
            answer = cast("Answer", json.loads(line))
            self._waiting.pop(answer["id"]).set_result(answer)

    async def begin(self) -> None:
        hello = await self._answer(0)
        self.peer_id, self.version = hello["peer"], hello["version"]
        self.addresses = hello["addresses"]

    def address(self, layer: str) -> str:
        (found,) = [each for each in self.addresses if ("/ws/" in each) == (layer == "ws")]
        return found

    async def ask(self, command: str, **fields: object) -> Answer:
        """Raises PeerNodeError."""
        self._asked += 1
        number = self._asked
        line = json.dumps({"id": number, "command": command, **fields}) + "\n"
        cast("asyncio.StreamWriter", self._process.stdin).write(line.encode())
        return await self._answer(number)

    def freeze(self) -> None:
        """Stop the process where it is; its sockets stay open.  For good: it is killed later."""
        self._process.send_signal(signal.SIGSTOP)

    async def _answer(self, number: int) -> Answer:
        self._waiting[number] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(PATIENCE_S):
            answer = await self._waiting[number]
        if "failed" in answer:
            raise PeerNodeError(answer["failed"])
        return answer


@asynccontextmanager
async def peer_node(*command: str) -> AsyncIterator[PeerNode]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT
    )
    node = PeerNode(process)
    reading = asyncio.create_task(node.run())
    try:
        await node.begin()
        yield node
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
