"""A client that asks for files through an exec endpoint, past the dispatch of a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from holdfast.config import FileLimits
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.dialects.exec.explain import explain
from holdfast.dialects.exec.methods import METHODS
from holdfast.engine.files import LocalFiles
from holdfast.poller import Poller
from holdfast.protocol import paths
from tests.fakes.exec_talk import ExecTalk
from tests.fakes.process import calls_over


def uri(path: Path | str) -> str:
    return paths.to_uri(str(path))


class FileScene(ExecTalk):
    """A client and the engine's files."""

    async def refused(self, method: str, params: Any) -> tuple[int, str]:
        """Code and words of a refusal."""
        wire = explain(await self.refusal(method, params))
        return wire.code, wire.message


@contextlib.asynccontextmanager
async def local_files(limits: FileLimits | None = None) -> AsyncIterator[LocalFiles]:
    """The files of this host.  Afterwards none of them is open."""
    poller = Poller()
    poller.attach(asyncio.get_running_loop())
    files = LocalFiles(asyncio.get_running_loop(), poller, limits)
    try:
        yield files
    finally:
        files.close()
        try:
            await calls_over(files.workers)
        finally:
            poller.close()


@contextlib.asynccontextmanager
async def file_scene(limits: FileLimits | None = None) -> AsyncIterator[FileScene]:
    async with local_files(limits) as files:
        scene = FileScene()
        scene.backend.files = files
        scene.endpoint = ExecEndpoint(scene.backend, METHODS, loop=scene.loop.loop, file_limits=limits)
        scene.talk = scene.endpoint.greet(scene.client)
        try:
            await scene.shake_hands()
            yield scene
        finally:
            scene.talk.ended()
