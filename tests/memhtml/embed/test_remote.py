"""A model by URL: what is sent, what comes back, and every way it can fail (`retrieval` §21)."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from tests.support.embed import Answer, Endpoint, embeddings, endpoint, ok

from memhtml.embed import remote
from memhtml.embed.port import ModelUnavailable, space
from memhtml.embed.remote import RemoteEmbedder

KEY = "sk-secret-key"
TEXT = "a private sentence"


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint() as place:
        yield place


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "FIRST_PAUSE_S", 0.0)


def test_texts_go_out_in_the_openai_shape_and_come_back_in_order(server: Endpoint) -> None:
    model = RemoteEmbedder(server.url, "some/model", KEY)
    found = model.embed(["a", "four", "é"])
    assert [row.tolist() for row in found] == [[1, 1, 1], [4, 1, 1], [1, 1, 1]]
    assert all(row.dtype == np.float32 for row in found)
    assert server.requests == [{"model": "some/model", "input": ["a", "four", "é"]}]
    assert server.paths == ["/v1/embeddings"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["Content-Type"] == "application/json"


def test_a_query_is_sent_as_any_text_and_cut(server: Endpoint) -> None:
    model = RemoteEmbedder(server.url, "m")
    assert model.embed_query("x" * 20_000).tolist() == [8000, 1, 1]
    assert "Authorization" not in server.headers[0]


def test_many_texts_go_in_several_requests(server: Endpoint) -> None:
    texts = ["x" * (1 + at % 7) for at in range(150)]
    found = RemoteEmbedder(server.url, "m").embed(texts)
    assert [row[0] for row in found] == [len(text) for text in texts]
    assert [len(request["input"]) for request in server.requests] == [64, 64, 22]


def test_no_text_asks_nothing(server: Endpoint) -> None:
    assert RemoteEmbedder(server.url, "m").embed([]) == []
    assert server.requests == []


def test_a_text_that_servers_refuse_is_sent_as_one_they_take(server: Endpoint) -> None:
    RemoteEmbedder(server.url, "m").embed(["", "lone \udc80 half"])
    assert server.requests[0]["input"] == [" ", "lone ? half"]


def test_the_width_is_asked_once_and_then_holds(server: Endpoint) -> None:
    model = RemoteEmbedder(server.url, "m")
    widths = [model.known_dim]
    assert (space(model), space(model)) == ("m@3", "m@3")
    widths.append(model.known_dim)
    assert widths == [None, 3]
    assert len(server.requests) == 1
    server.answers = [embeddings(4)]
    with pytest.raises(ModelUnavailable) as caught:
        model.embed(["a"])
    assert "4 numbers, not 3" in caught.value.reason


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_endpoint_is_tried_again(status: int, server: Endpoint) -> None:
    server.answers = [(status, {}, b""), (status, {}, b"no"), embeddings(2)]
    assert RemoteEmbedder(server.url, "m").embed_query("abc").tolist() == [3, 1]
    assert len(server.requests) == 3


def test_an_endpoint_that_stays_busy_is_given_up(server: Endpoint) -> None:
    server.answers = [(503, {}, b"")]
    with pytest.raises(ModelUnavailable) as caught:
        RemoteEmbedder(server.url, "m").embed([TEXT])
    assert caught.value.reason == "the endpoint answered 503"
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_a_refusal_is_not_tried_again_and_tells_no_secret(status: int, server: Endpoint) -> None:
    server.answers = [(status, {}, f"{TEXT} {KEY}".encode())]
    with pytest.raises(ModelUnavailable) as caught:
        RemoteEmbedder(server.url, "m", KEY).embed([TEXT])
    assert str(caught.value) == f"m: the endpoint answered {status}"
    assert len(server.requests) == 1


def test_a_pause_that_the_endpoint_asks_for_is_kept_within_bounds(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("memhtml.embed.remote.time.sleep", pauses.append)
    server.answers = [
        (429, {"Retry-After": "2"}, b""),
        (429, {"Retry-After": "86400"}, b""),
        embeddings(2),
    ]
    RemoteEmbedder(server.url, "m").embed(["a"])
    assert pauses == [2.0, 5.0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_texts_and_key_elsewhere(status: int, server: Endpoint) -> None:
    with endpoint() as other:
        server.answers = [(status, {"Location": f"{other.url}/embeddings"}, b"")]
        with pytest.raises(ModelUnavailable) as caught:
            RemoteEmbedder(server.url, "m", KEY).embed([TEXT])
        assert caught.value.reason == f"the endpoint answered {status}"
        assert other.requests == []
    assert len(server.requests) == 1


def row(*numbers: object, index: object = 0) -> object:
    return {"index": index, "embedding": list(numbers)}


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, b""),
        (200, {}, b"no json"),
        (200, {}, b"\xff\xfe"),
        (200, {}, b"[" * 100_000),
        (200, {}, b"null"),
        ok([]),
        ok({}),
        ok({"data": None}),
        ok({"data": []}),
        ok({"data": [row(1.0), row(1.0, index=1)]}),
        ok({"data": [row(1.0, index=1)]}),
        ok({"data": [row(1.0, index="0")]}),
        ok({"data": [row(1.0, index=[])]}),
        ok({"data": ["a"]}),
        ok({"data": [{"index": 0}]}),
        ok({"data": [{"index": 0, "embedding": "AACAPw=="}]}),
        ok({"data": [{"index": 0, "embedding": None}]}),
        ok({"data": [row()]}),
        ok({"data": [row("1.0")]}),
        ok({"data": [row(True)]}),
        ok({"data": [row(None)]}),
        ok({"data": [row([1.0])]}),
        ok({"data": [row(float("nan"))]}),
        ok({"data": [row(float("inf"))]}),
        ok({"data": [row(1e300)]}),
        ok({"data": [row(10**400)]}),
        ok({"data": [row(*[0.5] * 65_537)]}),
    ],
)
def test_an_answer_that_is_no_vectors_is_a_failure_of_the_model(
    answer: Answer, server: Endpoint
) -> None:
    server.answers = [answer]
    model = RemoteEmbedder(server.url, "m", KEY)
    with pytest.raises(ModelUnavailable) as caught:
        model.embed([TEXT])
    assert caught.value.model_id == "m"
    assert KEY not in str(caught.value) and TEXT not in str(caught.value)
    assert model.known_dim is None


def test_an_answer_without_end_is_not_read_to_it(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_ANSWER_BYTES", 1000)
    monkeypatch.setattr(remote, "_ANSWER_BYTES_A_TEXT", 10)
    server.answers = [(200, {}, b" " * 1_000_000)]
    with pytest.raises(ModelUnavailable) as caught:
        RemoteEmbedder(server.url, "m").embed([TEXT])
    assert caught.value.reason == "its answer is longer than 1010 bytes"


def test_a_port_without_a_server_is_a_failure_of_the_model() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ModelUnavailable) as caught:
            RemoteEmbedder(url, "m").embed([TEXT])
    assert caught.value.reason == "the endpoint cannot be reached (Connection refused)"


def test_a_server_that_says_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(ModelUnavailable) as caught:
            RemoteEmbedder(f"http://127.0.0.1:{listener.getsockname()[1]}", "m").embed([TEXT])
        assert caught.value.reason == "the endpoint gave no answer in 0.1 s"
        listener.settimeout(0)
        with listener.accept()[0], pytest.raises(BlockingIOError):
            listener.accept()


def test_a_server_that_drips_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "TIMEOUT_S", 0.3)

    def drip(listener: socket.socket) -> None:
        with listener.accept()[0] as peer, contextlib.suppress(OSError):
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _byte in range(1000):
                peer.sendall(b" ")
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        with pytest.raises(ModelUnavailable) as caught:
            RemoteEmbedder(f"http://127.0.0.1:{listener.getsockname()[1]}", "m").embed([TEXT])
        thread.join()
    assert caught.value.reason == "the endpoint gave no answer in 0.3 s"


def test_a_loopback_address_is_asked_past_any_proxy(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        RemoteEmbedder(server.url, "m", KEY).embed([TEXT])
        assert (len(server.requests), proxy.requests) == (1, [])


def test_another_machine_is_asked_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with endpoint() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        found = RemoteEmbedder("http://models.invalid/v1", "m").embed_query("abc")
        assert found.tolist() == [3, 1, 1]
        assert proxy.paths == ["http://models.invalid/v1/embeddings"]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("a.localhost", True),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_what_is_a_loopback_address(host: str, loopback: bool) -> None:
    assert remote._is_loopback(host) is loopback
