"""What the table is made of: an argument, a flag, a command. Data only; every command loads it."""

from __future__ import annotations


class Arg:
    """A positional. With `values` it takes nothing else; the last one of a command may repeat."""

    __slots__ = ("description", "name", "repeatable", "required", "values")

    def __init__(
        self,
        name: str,
        description: str,
        *,
        required: bool = False,
        repeatable: bool = False,
        values: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.required = required
        self.repeatable = repeatable
        self.values = values


class Flag:
    """A flag: `type` is `string`, `int` or `boolean`.

    `check` names a value check of `memhtml.cli.checks`. `variable` fills an absent flag and makes
    it required when it is unset. `example` stands for a value in suggestions and usage lines.
    """

    __slots__ = (
        "check",
        "default",
        "description",
        "example",
        "name",
        "repeatable",
        "required",
        "type",
        "values",
        "variable",
    )

    def __init__(
        self,
        name: str,
        type: str,
        description: str,
        *,
        values: tuple[str, ...] = (),
        required: bool = False,
        repeatable: bool = False,
        default: str | int | bool | None = None,
        check: str = "text",
        variable: str = "",
        example: str = "",
    ) -> None:
        self.name = name
        self.type = type
        self.description = description
        self.values = values
        self.required = required
        self.repeatable = repeatable
        self.default = default
        self.check = check
        self.variable = variable
        self.example = example or f"<{name}>"


class Command:
    """A command; `handler` is `module:function` under `memhtml.cli.commands`.

    `one_of` names flags of which a call needs one; suggested calls show the first.
    """

    __slots__ = ("args", "examples", "flags", "handler", "name", "one_of", "summary", "types")

    def __init__(
        self,
        name: str,
        handler: str,
        summary: str,
        *,
        args: tuple[Arg, ...] = (),
        flags: tuple[Flag, ...] = (),
        one_of: tuple[str, ...] = (),
        types: tuple[str, ...],
        examples: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.handler = handler
        self.summary = summary
        self.args = args
        self.flags = flags
        self.one_of = one_of
        self.types = types
        self.examples = examples
