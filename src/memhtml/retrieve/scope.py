"""What a read is narrowed to, and the SQL conditions that say so (spec `retrieval` §6).

One filter is built for a call and put inside every arm. It never widens, and it names no table of
traces. Nothing here ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memhtml_format.text import is_blank, split_entity, trim

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Iterable, Iterator

# A scope of no more files than this is listed once, and every arm starts from the list. A wider
# one is a condition on what an arm walks anyway: there the 40 best are never far away.
NARROW = 1_000
TASK = "task"

_TYPE_INDEXES: dict[tuple[int, ...], str] = {
    (0,): "INDEXED BY files_type",
    (1,): "INDEXED BY files_archived_type",
}


class Scope(NamedTuple):
    """What the caller asked for. Blank texts mean "not given"; `settled` drops them.

    `memory_types`: any of them; none means every type but `task`. `tags`: any of them. `entity`:
    one `type:name`. `facets`: `name=value` each. `as_of`: `YYYY-MM-DD` or isoSecond; it takes the
    place of `include_archived`.
    """

    memory_types: tuple[str, ...] = ()
    workspace: str | None = None
    tags: tuple[str, ...] = ()
    entity: str | None = None
    facets: tuple[str, ...] = ()
    include_archived: bool = False
    as_of: str | None = None


class Filter(NamedTuple):
    """A scope as SQL over the alias `f` of `files`.

    `archived`: the values of that column that are in scope. `condition` is the rest. `listed` is
    a JSON array of every id in scope when they are few, else None. `values` are the parameters.
    """

    archived: tuple[int, ...]
    condition: str
    listed: str | None
    values: dict[str, str]

    @property
    def whole(self) -> str:
        """Everything that decides whether a row of `f` is in scope."""
        if self.listed is not None:
            return "f.id IN (SELECT value FROM json_each(:listed))"
        live = "f.archived = 0 AND " if self.archived == (0,) else ""
        return f"{live}{self.condition}"

    @property
    def is_empty(self) -> bool:
        """Whether the list is there and holds nothing."""
        return self.listed == "[]"

    @property
    def parameters(self) -> dict[str, str]:
        """The values that `whole` binds."""
        return self.values if self.listed is None else {"listed": self.listed}


class _Child(NamedTuple):
    """A condition on a child table: a select of paths, to which more conditions can be added."""

    select: str
    alias: str

    @property
    def test(self) -> str:
        """The condition on a row of `f`."""
        return f"EXISTS ({self.select} AND {self.alias}.path = f.path)"


def split_facet(text: str) -> tuple[str, str] | None:
    """Name and value of `name=value`, trimmed; None when either half is empty or `=` is absent."""
    name, equals, value = text.partition("=")
    halves = trim(name), trim(value)
    return halves if equals and all(halves) else None


def settled(scope: Scope) -> Scope:
    """The scope without blanks and repeats, texts trimmed where stored ones are."""
    return Scope(
        _distinct(scope.memory_types),
        None if scope.workspace is None or is_blank(scope.workspace) else scope.workspace,
        _distinct(trim(tag) for tag in scope.tags),
        trim(scope.entity or "") or None,
        _distinct(facet for facet in scope.facets if split_facet(facet)),
        scope.include_archived,
        trim(scope.as_of or "") or None,
    )


def narrows(scope: Scope) -> bool:
    """Whether the scope narrows by type, workspace, tag, entity or facet."""
    given = settled(scope)
    return bool(given.memory_types or given.workspace or given.tags or given.entity or given.facets)


def make_filter(conn: sqlite3.Connection, scope: Scope) -> Filter:
    """The filter of a scope. A narrow one is listed, which costs what it holds.

    Raises sqlite3.Error.
    """
    terms = _Terms(settled(scope))
    if not narrows(scope):
        return terms.filter()
    sql = f"{_listing(conn, terms)} LIMIT {NARROW + 1}"
    ids = [str(row[0]) for row in conn.execute(sql, terms.values)]
    found = terms.filter()
    return found if len(ids) > NARROW else found._replace(listed=f"[{','.join(ids)}]")


def archive_listing(conn: sqlite3.Connection, scope: Scope) -> tuple[str, dict[str, str]]:
    """A select of the `id` of every archived file that the same scope matches, and its values.

    `as_of` does not count. Raises sqlite3.Error.
    """
    terms = _Terms(settled(scope)._replace(as_of=None), archived=(1,))
    return _listing(conn, terms), terms.values


def _listing(conn: sqlite3.Connection, terms: _Terms) -> str:
    """A select of the `id` of every file, in no order, driven by what narrows it most."""
    rest = [terms.types, *terms.validity, *terms.archive]
    # A plus sign keeps the planner off a column's indexes: it shall walk what is named first.
    kept = [part if part in terms.validity else f"+{part}" for part in rest]
    if terms.children:
        driver = min(terms.children, key=lambda child: _size(conn, child, terms.values))
        kept += [child.test for child in terms.children if child is not driver]
        kept += [f"+{terms.workspace}"] if terms.workspace else []
        return (
            f"SELECT DISTINCT f.id AS id FROM ({driver.select}) d"
            f" CROSS JOIN files f ON f.path = d.path WHERE {' AND '.join(kept)}"
        )
    if terms.workspace:
        return f"SELECT f.id AS id FROM files f WHERE {' AND '.join([terms.workspace, *kept])}"
    index = _TYPE_INDEXES.get(terms.archived, "") if terms.by_type else ""
    return f"SELECT f.id AS id FROM files f {index} WHERE {' AND '.join(rest)}"


def _size(conn: sqlite3.Connection, child: _Child, values: dict[str, str]) -> int:
    """How many rows a condition names, counted no further than matters."""
    sql = f"SELECT count(*) FROM ({child.select} LIMIT {NARROW + 1})"
    found: int = conn.execute(sql, values).fetchone()[0]
    return found


def entity_halves(reference: str) -> tuple[str, str]:
    """Type and name as the index stores them: without a usable colon the type is `unknown`."""
    return split_entity(reference) or ("unknown", reference)


class _Terms:
    """The conditions of a settled scope, and the values they bind."""

    def __init__(self, given: Scope, archived: tuple[int, ...] | None = None) -> None:
        self.values: dict[str, str] = {}
        both = given.include_archived or given.as_of is not None
        self.archived = archived or ((0, 1) if both else (0,))
        # Both sides together are no condition.
        self.archive = [f"f.archived = {self.archived[0]}"] if len(self.archived) == 1 else []
        self.by_type = bool(given.memory_types)
        self.types = f"f.memory_type <> '{TASK}'"
        if given.memory_types:
            self.types = f"f.memory_type IN ({self._bind(given.memory_types)})"
        self.workspace = ""
        if given.workspace is not None:
            self.workspace = f"f.workspace = {self._bind([given.workspace])}"
        self.validity: list[str] = []
        if given.as_of is not None:
            at = self._bind([given.as_of])
            self.validity = [
                f"coalesce(f.valid_from, f.event_at, f.created_at) <= {at}",
                f"(f.valid_until IS NULL OR f.valid_until > {at})",
            ]
        self.children = [*self._entity(given), *self._tags(given), *self._facets(given)]

    def filter(self) -> Filter:
        """The conditions as every arm tests them."""
        parts = [self.types, *([self.workspace] if self.workspace else []), *self.validity]
        parts += [child.test for child in self.children]
        return Filter(self.archived, " AND ".join(parts), None, self.values)

    def _bind(self, texts: Iterable[str]) -> str:
        names = []
        for text in texts:
            names.append(f"scope{len(self.values)}")
            self.values[names[-1]] = text
        return ", ".join(f":{name}" for name in names)

    def _entity(self, given: Scope) -> Iterator[_Child]:
        if given.entity is None:
            return
        kind, name = entity_halves(given.entity)
        yield _Child(
            "SELECT e.path FROM file_entities e"
            f" WHERE e.entity_type = {self._bind([kind])} COLLATE NOCASE"
            f" AND e.entity_name = {self._bind([name])} COLLATE NOCASE",
            "e",
        )

    def _tags(self, given: Scope) -> Iterator[_Child]:
        if given.tags:
            marks = self._bind(given.tags)
            yield _Child(f"SELECT t.path FROM file_tags t WHERE t.tag IN ({marks})", "t")

    def _facets(self, given: Scope) -> Iterator[_Child]:
        wanted: dict[str, list[str]] = {}
        for name, value in filter(None, map(split_facet, given.facets)):
            wanted.setdefault(name, []).append(value)
        for name, values in wanted.items():
            yield _Child(
                f"SELECT v.path FROM file_facets v WHERE v.name = {self._bind([name])}"
                f" AND v.value IN ({self._bind(values)})",
                "v",
            )


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if not is_blank(text)))
