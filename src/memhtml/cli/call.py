"""What a handler receives and what it gives back.

A handler is `def name(call: Call) -> Answer`. It prints nothing and raises `MemhtmlError` to fail.
"""

from __future__ import annotations

from memhtml import config
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Answer:
    """A success: the response type and its payload.

    `stderr` is extra text for people (a failed replay). `exit_status` is 0 but for `replay`.
    `markdown`, when set, is printed in place of the envelope (help on a terminal). `afterwards` is
    work that nobody waits for; it runs once the answer is out, and cannot change it.
    """

    __slots__ = ("afterwards", "data", "exit_status", "markdown", "stderr", "type")

    def __init__(
        self,
        type: str,
        data: Mapping[str, object],
        exit_status: int = 0,
        stderr: str = "",
        markdown: str | None = None,
        afterwards: Callable[[], None] | None = None,
    ) -> None:
        self.afterwards = afterwards
        self.type = type
        self.data = data
        self.exit_status = exit_status
        self.stderr = stderr
        self.markdown = markdown


class Session:
    """Which session a call works on (spec `sessions` §1.1 and §11).

    `from_variable`: the line named no `--id`, so put and exec may start it.
    `run_bound`: the id equals `MEMHTML_SESSION`, however it was spelled.
    """

    __slots__ = ("from_variable", "id", "run_bound")

    def __init__(self, id: str, from_variable: bool, run_bound: bool) -> None:
        self.id = id
        self.from_variable = from_variable
        self.run_bound = run_bound


class Call:
    """One parsed call. `flags` holds every flag of the command, its default where none was given.

    The typed getters refuse a name the command's table entry does not have (`KeyError`).
    """

    __slots__ = ("args", "flags", "given", "name", "repo", "terminal")

    def __init__(
        self,
        name: str,
        args: Sequence[str] = (),
        flags: Mapping[str, object] | None = None,
        given: frozenset[str] = frozenset(),
        repo: str = "",
        terminal: bool = False,
    ) -> None:
        self.name = name
        self.args = list(args)
        self.flags = dict(flags or {})
        self.given = given
        self.repo = repo
        self.terminal = terminal

    def text(self, flag: str) -> str | None:
        """The value of a `string` flag, or None when it was not given and has no default."""
        value = self.flags[flag]
        return None if value is None else str(value)

    def number(self, flag: str) -> int:
        """The value of an `int` flag that has a default."""
        value = self.flags[flag]
        if not isinstance(value, int):
            raise TypeError(f"--{flag} has no number")
        return value

    def switch(self, flag: str) -> bool:
        """The value of a `boolean` flag."""
        return bool(self.flags[flag])

    def texts(self, flag: str) -> list[str]:
        """The values of a repeatable `string` flag, in order."""
        value = self.flags[flag]
        return [str(each) for each in value] if isinstance(value, (list, tuple)) else []

    def root(self) -> str:
        """The store root, absolute, symlinks resolved (spec `cli` §4).

        Raises `MemhtmlError` `ERR_REPO_REQUIRED`. Read input files before calling this (§3.3).
        """
        try:
            return config.root(self.repo)
        except MemhtmlError as error:
            from memhtml.cli import registry, suggest

            way = suggest.call(registry.BY_NAME[self.name], f"--repo {registry.REPO.example}")
            raise MemhtmlError(error.code, str(error), suggestions=(way,)) from None

    def store(self) -> str:
        """The root of the store the call works on: the top of a work tree whose local state is
        its own. Read input files before calling this (spec `cli` §3.3).

        Raises `MemhtmlError` `ERR_REPO_REQUIRED`, `ERR_GIT`, `ERR_STORAGE`.
        """
        from memhtml.store import refs, trust

        root = self.root()
        refs.require_worktree(root)
        trust.require_local_state(root)
        return root

    def session(self) -> Session:
        """The session the call names, by `--id` or else by `MEMHTML_SESSION`.

        The parser has refused a bad or an absent id. Raises `MemhtmlError`, as it does, for a call
        that was built otherwise.
        """
        given = self.text("id")
        if given is not None:
            name = given.strip()
            bound = name == config.session_variable()
            return Session(name, from_variable=False, run_bound=bound)
        variable = config.bound_session()
        if variable is None:
            raise MemhtmlError("ERR_MISSING_ARGUMENT", "needs --id or MEMHTML_SESSION")
        return Session(variable, from_variable=True, run_bound=True)
