"""The method by which a client reads the configuration that this host has for it.

What must hold: a client gets no file that it could not read by a file request; no file makes the event loop,
or the other clients, wait for long.
"""

from __future__ import annotations

import asyncio
import errno
from functools import partial

from holdfast.errors import BadRequest, FileFailed, FileRefused, FileUnsupported, Forbidden
from holdfast.files import Files
from holdfast.protocol import paths
from holdfast.protocol.environment import ConfigLayers, ReadConfigParams, ReadConfigResult

from . import config_layers
from .bundles import not_utf8
from .config_layers import ConfigFiles, ConfigTexts, broken
from .conversation import ExecConversation
from .decoding import local
from .explain import file_text
from .places import CodexPlaces


async def read_config(talk: ExecConversation, params: ReadConfigParams) -> ReadConfigResult:
    """Return the wanted keys of Codex's configuration on this host, layer by layer."""
    asked = (params.config_paths, params.requirements_paths)
    if not any(asked):
        raise BadRequest("at least one config or requirements path is required")
    if not all(path for paths_ in asked for path in paths_):
        raise BadRequest("TOML paths must contain at least one key segment")
    try:
        local(paths.parse(params.cwd))
    except FileRefused as error:
        raise BadRequest(str(error)) from None
    files, places = talk.backend.files, talk.endpoint.places
    home = await _true(files, places.codex_home)
    at = ConfigFiles(
        system=f"{places.system}/config.toml",
        user="" if home is None else f"{home}/config.toml",
        managed=f"{places.system}/managed_config.toml",
        requirements=f"{places.system}/requirements.toml",
    )
    async with talk.discovering:
        texts = ConfigTexts(
            system=await _text(files, at.system),
            user=await _text(files, at.user),
            managed=await _text(files, at.managed),
            requirements=await _text(files, at.requirements),
        )
        # In a thread, because the reader is written in Python; one for each client at a time.
        work = partial(config_layers.layers, at, texts, *asked)
        config, requirements = await asyncio.get_running_loop().run_in_executor(None, work)
    return _result(places, home, config, requirements)


def _result(
    places: CodexPlaces,
    home: str | None,
    config: ConfigLayers,
    requirements: ConfigLayers,
) -> ReadConfigResult:
    return ReadConfigResult(
        user_home_dir=places.home and paths.to_uri(places.home),
        codex_home_dir=home and paths.to_uri(home),
        hostname=places.hostname,
        config=config,
        requirements=requirements,
    )


async def _true(files: Files, path: str | None) -> str | None:
    """Return a directory without links, or as it was given if it cannot be found."""
    if path is None:
        return None
    try:
        return await files.canonical(path)
    except (FileFailed, FileRefused, Forbidden):
        return path


async def _text(files: Files, path: str) -> str | None:
    """Return the text of a file; None if there is none, or none that this client may read."""
    if not path:
        return None
    try:
        data = await files.read(path, at_once=config_layers.FILE_BYTES)
    except Forbidden:
        return None
    except FileFailed as error:
        if error.number in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise broken(path, file_text(error.number)) from error
    except (FileRefused, FileUnsupported) as error:
        raise broken(path, str(error)) from error
    if not isinstance(data, bytes):
        data.close()
        raise broken(path, f"the file exceeds the {config_layers.FILE_BYTES}-byte limit")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise broken(path, not_utf8(error)) from error
