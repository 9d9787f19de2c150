"""A model behind an OpenAI-shaped endpoint: `POST {base}/embeddings` (spec `retrieval` §21).

Standard library alone. No redirect is followed, so texts and key go where the setting says and
nowhere else. A loopback address is asked directly; any other goes through the proxies of the
environment, as other programs do. Whatever goes wrong is `ModelUnavailable`, and its words hold
neither key nor texts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memhtml.embed.port import ModelUnavailable, unicode_text

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

    from memhtml.embed.port import Vector

TIMEOUT_S = 30.0
TEXTS_A_REQUEST = 64
TRIES = 3
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
TRY_AGAIN = frozenset((429, 500, 502, 503, 504))
WIDEST = 65_536
LONGEST_QUERY = 8_000
"""Characters of a query that are sent; a record's text is cut by who embeds it."""
_CHUNK_BYTES = 1 << 16
_ANSWER_BYTES = 1 << 20
_ANSWER_BYTES_A_TEXT = 1 << 18


class RemoteEmbedder:
    """One model of one endpoint. Its width is what its first answer has; from then on it is fixed.

    `base_url` is an http or https URL without a slash at its end. Retries 429, 5xx and broken
    connections twice, with pauses; a request may take 30 s. Safe to call from several threads.
    """

    def __init__(self, base_url: str, model: str, api_key: str | None = None) -> None:
        self.model_id = model
        self._url = f"{base_url}/embeddings"
        self._key = api_key
        self._width: int | None = None
        self._opener: OpenerDirector | None = None

    @property
    def known_dim(self) -> int | None:
        """The width as far as it is known without asking."""
        return self._width

    @property
    def dim(self) -> int:
        """The width of a vector; the endpoint is asked once. Raises `ModelUnavailable`."""
        if self._width is None:
            self.embed_query("width")
        assert self._width is not None
        return self._width

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per document, `TEXTS_A_REQUEST` in a request. Raises `ModelUnavailable`."""
        found: list[Vector] = []
        for start in range(0, len(texts), TEXTS_A_REQUEST):
            found += self._vectors(texts[start : start + TEXTS_A_REQUEST])
        return found

    def embed_query(self, text: str) -> Vector:
        """The vector of a query; the protocol knows no form of its own for one."""
        return self._vectors([text[:LONGEST_QUERY]])[0]

    def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        import json

        # An empty text is an error to several servers, and a vector all the same to us.
        given = [unicode_text(text) or " " for text in texts]
        body = json.dumps({"model": self.model_id, "input": given})
        answer = self._asked(body.encode(), _ANSWER_BYTES + _ANSWER_BYTES_A_TEXT * len(texts))
        try:
            rows = _rows(json.loads(answer), len(texts))
            vectors = [self._vector(row) for row in rows]
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            raise self._failure(f"its answer is no list of vectors ({error})") from error
        return vectors

    def _vector(self, row: Any) -> Vector:
        try:
            import numpy as np  # 60 ms, and only who embeds pays.
        except ImportError as error:
            raise self._failure("numpy is not installed; install memhtml[embed]") from error
        if not isinstance(row, list) or not all(type(each) in (float, int) for each in row):
            raise ValueError("an embedding is no list of numbers")
        with np.errstate(over="ignore"):
            vector = np.array(row, dtype=np.float64).astype(np.float32)
        if not np.isfinite(vector).all():
            raise ValueError("an embedding has a number that is not finite")
        if self._width is None and 1 <= len(vector) <= WIDEST:
            self._width = len(vector)
        if len(vector) != self._width:
            raise ValueError(f"an embedding has {len(vector)} numbers, not {self._width}")
        return vector

    def _asked(self, body: bytes, limit_bytes: int) -> bytes:
        """The answer's bytes, after as many tries as it takes and is allowed."""
        from http.client import HTTPException
        from urllib.error import HTTPError

        for attempt in range(1, TRIES + 1):
            pause_s = FIRST_PAUSE_S * 2 ** (attempt - 1)
            try:
                return self._post(body, limit_bytes)
            except HTTPError as error:
                with error:
                    reason = f"the endpoint answered {error.code}"
                    pause_s = _retry_after_s(error.headers.get("Retry-After"), pause_s)
                if error.code not in TRY_AGAIN:
                    break
            except TimeoutError:
                # Whoever waits has waited long enough.
                raise self._failure(f"the endpoint gave no answer in {TIMEOUT_S:g} s") from None
            except (OSError, HTTPException) as error:
                reason = f"the endpoint cannot be reached ({_words(error)})"
            if attempt < TRIES:
                time.sleep(pause_s)
        raise self._failure(reason)

    def _post(self, body: bytes, limit_bytes: int) -> bytes:
        from urllib.request import Request

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        if self._opener is None:
            self._opener = _opener(self._url)
        request = Request(self._url, data=body, headers=headers, method="POST")
        until_s = time.monotonic() + TIMEOUT_S
        found = bytearray()
        with self._opener.open(request, timeout=TIMEOUT_S) as response:
            while chunk := response.read1(_CHUNK_BYTES):
                found += chunk
                if len(found) > limit_bytes:
                    raise self._failure(f"its answer is longer than {limit_bytes} bytes")
                # The timeout of the socket starts anew with each byte of a slow sender.
                if time.monotonic() > until_s:
                    raise TimeoutError
        return bytes(found)

    def _failure(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(self.model_id, reason)


def _opener(url: str) -> OpenerDirector:
    """An opener that follows no redirect, and uses a proxy only for what is another machine."""
    from urllib.parse import urlsplit
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirect is an answer like any other error: it would take texts and key elsewhere."""

        def redirect_request(self, *_arguments: Any) -> None:
            return None

    proxies: dict[str, str] | None = {} if _is_loopback(urlsplit(url).hostname or "") else None
    return build_opener(ProxyHandler(proxies), Stay())


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _rows(answer: Any, count: int) -> list[Any]:
    """The embeddings in the order of the texts; every one once."""
    data = answer["data"]
    places = {item["index"]: item["embedding"] for item in data}
    if len(data) != count or places.keys() != set(range(count)):
        raise ValueError("it does not hold one embedding for each text")
    return [places[at] for at in range(count)]


def _retry_after_s(header: str | None, otherwise_s: float) -> float:
    """The pause an answer asks for, in seconds, as far as we are willing to wait."""
    if header is None or not (header.isascii() and header.strip().isdigit()):
        return otherwise_s
    return min(float(header), LONGEST_PAUSE_S)


def _words(error: BaseException) -> str:
    """A connection's failure in the system's words; never the URL, which may hold a password."""
    inner = getattr(error, "reason", error)
    words = getattr(inner, "strerror", None)
    return str(words) if words else type(inner).__name__
