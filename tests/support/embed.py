"""Stand-ins for embedders: one whose vectors a test chooses, and an endpoint on the loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np

from memhtml.embed.port import ModelUnavailable

if TYPE_CHECKING:
    from memhtml.embed.port import Vector


def vector(*numbers: float) -> Vector:
    """A vector of these numbers."""
    return np.array(numbers, dtype=np.float32)


class Fixed:
    """An embedder whose texts and queries have given vectors; it notes what it was asked.

    Without `documents` a document has the vector `other`. `failing` words make every call fail,
    `pause_s` makes it slow.
    """

    def __init__(
        self,
        queries: Mapping[str, Sequence[float]] | None = None,
        documents: Mapping[str, Sequence[float]] | None = None,
        *,
        other: Sequence[float] = (0.0, 0.0),
        model_id: str = "fixed",
        failing: str | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self.model_id = model_id
        self.dim = len(other)
        self.asked: list[list[str]] = []
        self._queries = queries or {}
        self._documents = documents or {}
        self._other = other
        self._failing = failing
        self._pause_s = pause_s

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The chosen vectors."""
        return self._answer(texts, self._documents)

    def embed_query(self, text: str) -> Vector:
        """The chosen vector."""
        return self._answer([text], self._queries)[0]

    def _answer(self, texts: Sequence[str], known: Mapping[str, Sequence[float]]) -> list[Vector]:
        self.asked.append(list(texts))
        time.sleep(self._pause_s)
        if self._failing is not None:
            raise ModelUnavailable(self.model_id, self._failing)
        return [vector(*known.get(text, self._other)) for text in texts]


class Endpoint:
    """What a loopback server was asked, and what it will answer next.

    `answers` are taken in turn, the last one again and again: a status, headers and a body, or a
    function of the request that gives them.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answers: list[Answer | Callable[[dict[str, Any]], Answer]] = [embeddings(3)]


Answer = tuple[int, Mapping[str, str], bytes]


def embeddings(dim: int) -> Callable[[dict[str, Any]], Answer]:
    """The answer of a sound server: a text's length, then ones; in reverse order."""

    def answer(request: dict[str, Any]) -> Answer:
        rows = [
            {"object": "embedding", "index": at, "embedding": [len(text), *[1.0] * (dim - 1)]}
            for at, text in enumerate(request["input"])
        ]
        return ok({"object": "list", "data": rows[::-1], "model": request["model"]})

    return answer


def ok(body: object) -> Answer:
    """A 200 with this JSON."""
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A server on 127.0.0.1, with nothing but `POST /v1/embeddings`, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(length))
            place.requests.append(request)
            place.headers.append(dict(self.headers))
            place.paths.append(self.path)
            answer = place.answers.pop(0) if len(place.answers) > 1 else place.answers[0]
            status, headers, body = answer(request) if callable(answer) else answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place = Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
