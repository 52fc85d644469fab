"""The exec endpoint: its methods, and a conversation for every client that connects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from holdfast.backend import KeptBackend
from holdfast.config import FileLimits, HttpLimits, SandboxLimits, SessionLimits
from holdfast.dialects.dialect import Client, Method

from .conversation import ExecConversation
from .state import ExecState


class ExecEndpoint(ExecState):
    """Implements ``dialect.Endpoint``."""

    def __init__(
        self,
        backend: KeptBackend,
        methods: Mapping[str, Method],
        *,
        loop: asyncio.AbstractEventLoop,
        limits: SessionLimits | None = None,
        http_limits: HttpLimits | None = None,
        file_limits: FileLimits | None = None,
        sandbox_limits: SandboxLimits | None = None,
    ) -> None:
        super().__init__(
            backend,
            loop=loop,
            limits=limits,
            http_limits=http_limits,
            file_limits=file_limits,
            sandbox_limits=sandbox_limits,
        )
        self.methods = methods

    def pick(self, text: bytes) -> ExecEndpoint:
        return self

    def greet(self, client: Client) -> ExecConversation:
        return ExecConversation(self, client)
