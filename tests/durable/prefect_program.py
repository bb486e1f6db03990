"""Runs an agent in a Prefect flow, in a process of its own: ``prefect_program.py FOLDER URL``.

The flow fails midway the first time, and Prefect runs it again.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prefect import flow
from pydantic_ai.durable_exec.prefect import PrefectDurability

from tests.adapters.scripts import BIG
from tests.durable.durable_agent import durable_agent

FOLDER, URL = Path(sys.argv[1]), sys.argv[2]
FAILED = FOLDER / "failed"


async def fetch() -> str:
    """Give a result."""
    return BIG


async def crash() -> str:
    """Fail the first time."""
    if FAILED.exists():
        return "went on"
    FAILED.touch()
    msg = "midway"
    raise RuntimeError(msg)


agent = durable_agent(FOLDER, URL, tools=[fetch, crash], engine=PrefectDurability())


async def night() -> str:
    """Run the agent."""
    return str((await agent.run("Fetch it.", conversation_id="conversation-1")).output)


flow_of_night = flow(retries=1)(night)
(FOLDER / "answer").write_text(asyncio.run(flow_of_night()))
