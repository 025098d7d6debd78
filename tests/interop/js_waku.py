"""A js-waku light node in a process of its own, asked over JSON lines; see ``js_waku.mjs``."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from scripts import interop
from tests.patience import PATIENCE_S

SCRIPT = Path(__file__).with_name("js_waku.mjs")
RELIABLE = Path(__file__).with_name("js_reliable.mjs")
LINE_LIMIT = 16 * 1024 * 1024

Answer = dict[str, Any]


class JsWakuError(Exception):
    """The node's own words."""


class JsWaku:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._in = cast("asyncio.StreamWriter", process.stdin)
        self._out = cast("asyncio.StreamReader", process.stdout)

    async def ask(self, command: str, **fields: object) -> Answer:
        """One at a time.  Raises JsWakuError."""
        self._in.write(json.dumps({"do": command, **fields}).encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            line = await self._out.readline()
        assert line, "Node ended"
        answer = cast("Answer", json.loads(line))
        if "failed" in answer:
            raise JsWakuError(answer["failed"])
        return answer


def js_waku(generation: str) -> AbstractAsyncContextManager[JsWaku]:
    """``generation``: "current" or "legacy"."""
    return _run(SCRIPT, generation)


def js_reliable() -> AbstractAsyncContextManager[JsWaku]:
    """With a ``ReliableChannel`` instead; see ``js_reliable.mjs``."""
    return _run(RELIABLE)


@asynccontextmanager
async def _run(script: Path, *arguments: str) -> AsyncIterator[JsWaku]:
    interop.ensure()
    process = await asyncio.create_subprocess_exec(
        str(interop.node()),
        str(script),
        str(interop.modules()),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT,
    )
    try:
        yield JsWaku(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
