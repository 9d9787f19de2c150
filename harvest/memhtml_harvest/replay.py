"""Judge the harvest of recorded runs again, without a sandbox (spec `cli` §10 `replay`).

`python -m memhtml_harvest.replay <dir>…` prints one JSON object and exits with 1 when a harvest
differs from its record or a folder is no fixture. `memhtml replay` runs the scripts as well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from memhtml_harvest.diff import harvest
from memhtml_harvest.fixture import Difference, Fixture, FixtureError, harvest_differences, load
from memhtml_harvest.seed import MapSeed


def judge(fixture: Fixture) -> list[Difference]:
    """The differences between the recorded harvest and one taken from the recorded trees."""
    result = harvest(fixture.after, fixture.vanished, MapSeed(fixture.seed), scope=fixture.scope)
    return harvest_differences(fixture.expect, result)


def report(folders: Sequence[str | os.PathLike[str]]) -> dict[str, Any]:
    """The verdict on every folder; raises `FixtureError` for one that is no fixture."""
    fixtures = []
    for folder in folders:
        fixture = load(folder)
        found = judge(fixture)
        fixtures.append(
            {
                "dir": os.fspath(folder),
                "name": fixture.name,
                "state": "failed" if found else "passed",
                "differences": [difference._asdict() for difference in found],
            }
        )
    failed = sum(item["state"] == "failed" for item in fixtures)
    return {
        "total": len(fixtures),
        "passed": len(fixtures) - failed,
        "failed": failed,
        "fixtures": fixtures,
    }


def main(arguments: Sequence[str]) -> int:
    """The command: 0 when all pass, 1 when not, 2 without a folder to judge."""
    if not arguments:
        print("usage: python -m memhtml_harvest.replay <dir>...", file=sys.stderr)
        return 2
    try:
        answer = report(arguments)
    except FixtureError as error:
        answer = {"error": error.why, "path": error.path}
    print(json.dumps(answer, indent=2, ensure_ascii=False))
    return 0 if answer.get("failed") == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
