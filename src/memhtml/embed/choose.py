"""Which embedder this process has (spec `retrieval` §21): the one resolver both paths call.

Choosing imports no numpy and loads no weights; that happens on the first text that is embedded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memhtml import config

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder


def bound_embedder() -> Embedder | None:
    """The embedder of `MEMHTML_EMBED`, or None: `off`, or `on` without the extra `embed`.

    Costs microseconds. One asked for by name is bound even when it cannot work, and then every
    embedding raises `ModelUnavailable`. Raises `MemhtmlError` `ERR_INVALID_FLAG` naming a bad
    variable.
    """
    settings = config.embedding()
    if settings.mode == "off":
        return None
    config.calm_threads()
    if settings.mode == "hash":
        from memhtml.embed.hashed import HashedEmbedder

        return HashedEmbedder()
    if settings.mode == "remote":
        from memhtml.embed.remote import RemoteEmbedder

        assert settings.base_url is not None and settings.model is not None
        return RemoteEmbedder(settings.base_url, settings.model, settings.api_key)
    from memhtml.embed.local import LocalEmbedder, installed

    if settings.mode == "on" and not installed():
        return None
    return LocalEmbedder(settings.model)
