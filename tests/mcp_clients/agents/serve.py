"""Runs jobs with the agent of one framework, in an environment without coatcheck. Its argument is the framework's name.

Each line of stdin is a job, and each line of stdout its answer: see ``ForeignAgent``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from inspect import iscoroutine


def main(framework: str) -> None:
    converse = import_module(f"{framework}_agent").converse
    for line in sys.stdin:
        try:
            answer = converse(json.loads(line))
            if iscoroutine(answer):
                answer = asyncio.run(answer)
        except Exception as error:  # noqa: BLE001 - reported to the test
            answer = {"error": repr(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main(sys.argv[1])
