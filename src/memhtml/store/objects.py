"""A repository's objects by their ids: by hand and a git child at first, by pygit2 for many.

Loading pygit2 costs 50 ms and opening a repository with it more, as much as a thousand objects
from a `git cat-file` child; a commit, a put or a comparison needs far fewer. So the first ones come
from loose files and the child, and whoever goes on reading gets pygit2. Bytes only: what an object
means is `repo`'s to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memhtml import log
from memhtml.errors import MemhtmlError
from memhtml.store import loose
from memhtml.store.cat_file import CatFile
from memhtml.store.pack import WORTH_A_PACK, ObjectKind, install_pack, unpack_objects
from memhtml.store.refs import git_accepts, is_packed, plain_git_dir, refused_owner

if TYPE_CHECKING:
    import pygit2

LIGHT_READS = 1000
"""How many objects are read without pygit2."""

_WINDOW_BYTES = 1 << 20
_MAPPED_BYTES = 24 << 20
_KEPT_BYTES = 4 << 20
_EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
_NAMES = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}


class ObjectMissing(MemhtmlError):
    """`ERR_GIT`: the repository does not have the object `oid`, 40 lower-case hex digits."""

    def __init__(self, oid: str) -> None:
        super().__init__("ERR_GIT", f"git object {oid} is missing")
        self.oid = oid


class Objects:
    """The objects of the repository whose work tree is `root`. Not to be shared between threads."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._git_dir = plain_git_dir(root)
        """Where loose files can be read and written by hand; None where git must."""
        self._child = CatFile(root)
        self._handle: pygit2.Repository | None = None
        self._reads = 0
        self._written: dict[bytes, tuple[str, bytes]] = {}
        self._written_bytes = 0

    def read(self, oid: bytes) -> tuple[str, bytes]:
        """An object's type (`blob`, `tree`, `commit`, `tag`) and its bytes.

        Raises `ObjectMissing`, or `MemhtmlError` `ERR_GIT` when the repository cannot be opened or
        the object is damaged.
        """
        found = self._written.get(oid)
        if found is None:
            found = self._find(oid)
        if found is None and oid == _EMPTY_TREE:
            return "tree", b""  # git knows it without storing it.
        if found is None:
            raise ObjectMissing(oid.hex())
        return found

    def store(self, objects: Mapping[str, tuple[ObjectKind, bytes]]) -> None:
        """Store objects given by their ids. Raises `MemhtmlError` `ERR_GIT`.

        Storing the same again costs a look-up. They are kept at hand: who wrote them reads them.
        """
        if len(objects) >= WORTH_A_PACK:
            install_pack(self.root, objects)
        elif self._git_dir is None:
            unpack_objects(self.root, objects)
        else:
            for oid, (kind, data) in objects.items():
                loose.write(self._git_dir, bytes.fromhex(oid), kind, data)
        for oid, (kind, data) in objects.items():
            self._written_bytes += len(data)
            if self._written_bytes > _KEPT_BYTES:
                self._written.clear()
                self._written_bytes = len(data)
            self._written[bytes.fromhex(oid)] = kind, data

    def close(self) -> None:
        """End the git child; the next read starts another."""
        self._child.close()

    def _find(self, oid: bytes) -> tuple[str, bytes] | None:
        if self._git_dir is not None:
            try:
                found = loose.read(self._git_dir, oid)
            except loose.Damaged as error:
                # Neither git nor libgit2 may be asked: both can wait for the rest of it for ever.
                if not is_packed(self._git_dir, oid.hex()):
                    raise MemhtmlError("ERR_GIT", f"git object {oid.hex()} is damaged") from error
                return self._child.read(oid)  # git looks into packs first.
            if found is not None:
                return found
        self._reads += 1
        return self._child.read(oid) if self._reads <= LIGHT_READS else self._many(oid)

    def _many(self, oid: bytes) -> tuple[str, bytes] | None:
        import pygit2

        if self._handle is None:
            self._child.close()
            self._handle = _open(self.root)
        try:
            number, data = self._handle.read(pygit2.Oid(raw=oid))
        except KeyError:
            return None
        except (pygit2.GitError, OSError) as error:
            log.error(f"object {oid.hex()}: {error}")
            raise MemhtmlError("ERR_GIT", f"git object {oid.hex()} cannot be read") from error
        return _NAMES[number], data


def _open(root: str) -> pygit2.Repository:
    import pygit2  # 50 ms: only who reads many objects pays it.

    settings = pygit2.settings
    settings.enable_caching(False)
    settings.mwindow_size = _WINDOW_BYTES
    settings.mwindow_mapped_limit = _MAPPED_BYTES
    try:
        return _opened(root)
    except pygit2.GitError as error:
        if "owned by" not in str(error):
            raise _cannot_open(error) from error
    # git knows more forms of `safe.directory` than libgit2: ask it before refusing.
    if not git_accepts(root):
        raise refused_owner(root)
    settings.owner_validation = False
    try:
        return _opened(root)
    except pygit2.GitError as error:
        raise _cannot_open(error) from error
    finally:
        settings.owner_validation = True


def _opened(root: str) -> pygit2.Repository:
    import pygit2

    return pygit2.Repository(root, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)


def _cannot_open(error: Exception) -> MemhtmlError:
    log.error(f"opening the repository: {error}")
    return MemhtmlError("ERR_GIT", "git cannot open the repository")
