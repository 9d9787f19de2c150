"""The bar of long work: on a terminal only, and gone when the work is done."""

from __future__ import annotations

import sys

import pytest

from memhtml.cli.progress import Bar


class Terminal:
    """A stream that is a terminal, or says so until it breaks."""

    def __init__(self, *, broken: bool = False) -> None:
        self.text = ""
        self._broken = broken

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._broken:
            raise OSError("gone")
        self.text += text
        return len(text)

    def flush(self) -> None:
        return None


def test_a_bar_fills_and_is_cleared_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar("embedding") as bar:
        bar(96, 192)
        bar(97, 192)  # Too soon to be drawn again.
        bar(192, 192)
    assert stream.text == (
        "\rembedding [###############...............] 96/192\x1b[K"
        "\rembedding [##############################] 192/192\x1b[K"
        "\r\x1b[K"
    )


def test_a_bar_says_nothing_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("embedding") as bar:
        bar(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_of_nothing_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar("embedding") as bar:
        bar(0, 0)
    assert stream.text == ""


def test_a_terminal_that_breaks_stops_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(broken=True))
    with Bar("embedding") as bar:
        bar(1, 2)
