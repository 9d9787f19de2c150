"""The only reader of the environment and of `memhtml.config.json` (spec `cli` §4 and §5).

Everything here answers plain values. What a policy file means is `memhtml.policy`; what a sandbox
does with its settings is `memhtml_sandbox`, which is handed them.
"""

from __future__ import annotations

import errno
import os
import stat

from memhtml.errors import MemhtmlError, StorageError

POLICY_FILE = "memhtml.config.json"
DEFAULT_ROOT = "~/memhtml"
DEFAULT_SANDBOX_UID = 65534
LARGEST_UID = 2**32 - 2
SWITCHED_OFF = ("", "0", "false", "no", "off")
BACK_ENDS = ("overlay", "copy")
EMBEDDERS = ("on", "off", "local", "hash", "remote")
DEFAULT_COVERAGE_FLOOR = 0.95
DEFAULT_EMBED_DEADLINE_MS = 450
LONGEST_NUMBER = 18
GIT_SETTINGS = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
ID_LENGTH = 128
ID_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
ID_REST = ID_FIRST | frozenset("._-")


def _variable(name: str) -> str | None:
    """A variable's value with outer white space cut, None when unset or blank."""
    return os.environ.get(name, "").strip() or None


def root(repo: str | None = None) -> str:
    """The store root: `--repo`, else `MEMHTML_ROOT`, else `~/memhtml` (spec `cli` §4).

    Absolute, symlinks resolved. Raises `MemhtmlError` `ERR_REPO_REQUIRED` when only `--repo` may
    name a root and it does not. Nothing is opened.
    """
    named = repo if repo and not repo.isspace() else None
    if named is None:
        if os.environ.get("MEMHTML_REFUSE_ENV_ROOT", "").strip().lower() not in SWITCHED_OFF:
            raise MemhtmlError(
                "ERR_REPO_REQUIRED",
                "name the store with --repo: MEMHTML_REFUSE_ENV_ROOT is set, so neither "
                "MEMHTML_ROOT nor ~/memhtml is used",
            )
        variable = os.environ.get("MEMHTML_ROOT", "")
        named = DEFAULT_ROOT if not variable.strip() else variable
    if named == "~" or named.startswith("~/"):
        named = os.path.expanduser("~") + named[1:]
    try:
        return os.path.realpath(named)
    except FileNotFoundError:
        raise MemhtmlError(
            "ERR_REPO_REQUIRED",
            "the current directory is gone, so a relative store root names nothing; "
            "give --repo an absolute path",
        ) from None


def session_variable() -> str | None:
    """`MEMHTML_SESSION` as it stands, outer white space cut; None when unset or blank."""
    return _variable("MEMHTML_SESSION")


def valid_session_id(text: str) -> bool:
    """Whether a trimmed text is a session id (spec `sessions` §1.1)."""
    return 0 < len(text) <= ID_LENGTH and text[0] in ID_FIRST and ID_REST.issuperset(text)


def bound_session() -> str | None:
    """The id `MEMHTML_SESSION` binds this process to, or None.

    Raises `MemhtmlError` `ERR_INVALID_FLAG` naming the variable when it is no valid id.
    """
    value = session_variable()
    if value is not None and not valid_session_id(value):
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"MEMHTML_SESSION is no session id: {value[:ID_LENGTH]!r}; an id is 1 to 128 of "
            "A-Z a-z 0-9 . _ - and starts with a letter or digit",
        )
    return value


def policy_bytes(root: str) -> bytes | None:
    """The store's policy file as it is now in the working tree, None when there is none.

    Raises `StorageError` `policy.invalid` when it is there and no readable regular file. A link is
    not followed: what a clone brings along must not name a file elsewhere.
    """
    path = os.path.join(root, POLICY_FILE)
    try:
        # O_NONBLOCK: a pipe in its place must be refused, not waited for.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise StorageError("policy.invalid", f"{POLICY_FILE}: is no regular file") from None
        raise StorageError(
            "policy.invalid", f"{POLICY_FILE}: cannot be read: {failure.strerror}"
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)  # `open` below would refuse a folder with an error of its own.
        raise StorageError("policy.invalid", f"{POLICY_FILE}: is no regular file")
    with open(file, "rb") as stream:
        try:
            return stream.read()
        except OSError as failure:
            raise StorageError(
                "policy.invalid", f"{POLICY_FILE}: cannot be read: {failure.strerror}"
            ) from None


class SandboxSettings:
    """What the environment says about the sandbox (spec `sandbox` §2.1, §3, §6.1, §9).

    `bwrap` and `cache_dir` are paths or None, `backend` is `overlay`, `copy` or None (by probe),
    `uid` the host uid and gid of a script that root runs, `cache_home` where a per-user cache may
    lie when the store's own file system cannot hold one.
    """

    __slots__ = ("backend", "bwrap", "cache_dir", "cache_home", "uid")

    def __init__(
        self, bwrap: str | None, backend: str | None, uid: int, cache_dir: str | None, home: str
    ) -> None:
        self.bwrap = bwrap
        self.backend = backend
        self.uid = uid
        self.cache_dir = cache_dir
        self.cache_home = home


def sandbox() -> SandboxSettings:
    """The sandbox settings. Raises `MemhtmlError` `ERR_INVALID_FLAG` naming a bad variable."""
    backend = _variable("MEMHTML_SANDBOX")
    if backend is not None and backend not in BACK_ENDS:
        raise MemhtmlError(
            "ERR_INVALID_FLAG", f"MEMHTML_SANDBOX is {backend!r}; allowed are overlay and copy"
        )
    uid = _variable("MEMHTML_SANDBOX_UID")
    if uid is not None and not (uid.isascii() and uid.isdigit() and 0 < int(uid) <= LARGEST_UID):
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"MEMHTML_SANDBOX_UID is {uid!r}; it must be a whole number from 1 to {LARGEST_UID}",
        )
    cache = _variable("MEMHTML_SANDBOX_CACHE")
    return SandboxSettings(
        bwrap=_variable("MEMHTML_BWRAP"),
        backend=backend,
        uid=int(uid) if uid else DEFAULT_SANDBOX_UID,
        cache_dir=os.path.abspath(os.path.expanduser(cache)) if cache else None,
        home=cache_home(),
    )


class EmbedSettings:
    """What the environment says about the embedder (spec `retrieval` §21).

    `mode` is one of `EMBEDDERS`. `model` is the remote model's name, or a folder of weights for
    `local`. `base_url` has no slash at its end; it and `model` are set when the mode is `remote`.
    """

    __slots__ = ("api_key", "base_url", "mode", "model")

    def __init__(
        self, mode: str, model: str | None, base_url: str | None, api_key: str | None
    ) -> None:
        self.mode = mode
        self.model = model
        self.base_url = base_url
        self.api_key = api_key


def embedding() -> EmbedSettings:
    """The embedder settings. Raises `MemhtmlError` `ERR_INVALID_FLAG` naming a bad variable.

    What only another mode reads is not judged.
    """
    mode = _variable("MEMHTML_EMBED") or "on"
    if mode not in EMBEDDERS:
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"MEMHTML_EMBED is {mode[:ID_LENGTH]!r}; allowed are {', '.join(EMBEDDERS)}",
        )
    model = _variable("MEMHTML_EMBED_MODEL")
    if mode != "remote":
        folder = os.path.abspath(os.path.expanduser(model)) if model else None
        return EmbedSettings(mode, folder, None, None)
    base_url = _variable("MEMHTML_LLM_BASE_URL")
    for name, value in (("MEMHTML_LLM_BASE_URL", base_url), ("MEMHTML_EMBED_MODEL", model)):
        if value is None:
            raise MemhtmlError("ERR_INVALID_FLAG", f"MEMHTML_EMBED=remote needs {name}")
    assert base_url is not None
    _check_url("MEMHTML_LLM_BASE_URL", base_url)
    key = _variable("MEMHTML_LLM_API_KEY")
    if key is not None and not (key.isascii() and key.isprintable()):
        # It travels in a header line.
        raise MemhtmlError(
            "ERR_INVALID_FLAG", "MEMHTML_LLM_API_KEY has a character other than printable ASCII"
        )
    return EmbedSettings(mode, model, base_url.rstrip("/"), key)


def _check_url(name: str, url: str) -> None:
    """Raise `ERR_INVALID_FLAG` unless the text is an http or https URL of a host."""
    from urllib.parse import urlsplit  # 4 ms, and only a remote embedder pays.

    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        sound = sound and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        sound = False
    # The value stays out of the sentence: a URL may carry a password.
    if not (sound and url.isascii() and url.isprintable() and " " not in url):
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"{name} is no plain http or https URL, such as http://127.0.0.1:8000/v1; a key "
            "belongs in MEMHTML_LLM_API_KEY",
        )


def calm_threads() -> None:
    """Keep numeric libraries that are loaded from now on from spinning while they wait.

    OpenMP's threads sleep instead: on a busy machine that is 16 ms a query in place of seconds.
    OpenBLAS, which only scans vectors here, gets one thread: 60 ms a scan of 100,000 in place of 90
    (all measured on two busy cores). A user's own settings stand.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    if not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & os.environ.keys():
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


def coverage_floor() -> float:
    """The share of chunks that need a vector before the vector arm runs (spec `retrieval` §8).

    Raises `MemhtmlError` `ERR_INVALID_FLAG` naming the variable.
    """
    text = _variable("MEMHTML_VECTOR_COVERAGE_FLOOR")
    if text is None:
        return DEFAULT_COVERAGE_FLOOR
    try:
        # Python would also read digits of other scripts, and underscores between them.
        floor = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        floor = -1.0
    if not 0.0 <= floor <= 1.0:
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"MEMHTML_VECTOR_COVERAGE_FLOOR is {text[:ID_LENGTH]!r}; it must be a number "
            "from 0 to 1",
        )
    return floor


def embed_deadline_ms() -> int:
    """How long a head search waits for its query's vector, in ms; 0 means no bound.

    Raises `MemhtmlError` `ERR_INVALID_FLAG` naming the variable.
    """
    text = _variable("MEMHTML_EMBED_DEADLINE_MS")
    if text is None:
        return DEFAULT_EMBED_DEADLINE_MS
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"MEMHTML_EMBED_DEADLINE_MS is {text[:ID_LENGTH]!r}; it must be a whole number of "
            "milliseconds, 0 for no bound",
        )
    return int(text)


def cache_home() -> str:
    """The user's cache folder: `XDG_CACHE_HOME` when absolute, else `~/.cache`."""
    named = _variable("XDG_CACHE_HOME")
    if named is not None and os.path.isabs(named):
        return named
    return os.path.join(os.path.expanduser("~"), ".cache")


def search_path() -> str:
    """`PATH`, for finding the commands of the sandbox."""
    return os.environ.get("PATH") or os.defpath


def git_environment() -> dict[str, str]:
    """The environment of a git child: no `GIT_*` but where git's settings are, messages in English.

    A hook or an alias exports `GIT_DIR` and the like, which would point the child at another store.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in GIT_SETTINGS
    }
    kept["LC_ALL"] = "C.UTF-8"
    return kept
