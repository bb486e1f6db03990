"""Runs an agent in a DBOS workflow, in a process of its own: ``dbos_program.py FOLDER URL DATABASE``.

The first process ends midway, as in a crash. A second one with the same folder and database resumes the workflow.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dbos import DBOS, SetWorkflowID
from pydantic_ai.durable_exec.dbos import DBOSDurability

from tests.adapters.scripts import BIG
from tests.durable.durable_agent import durable_agent

FOLDER, URL, DATABASE = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
ANSWER, CRASHED, FETCHED = (FOLDER / name for name in ("answer", "crashed", "fetched"))
WORKFLOW = "workflow-1"


async def fetch() -> str:
    """Give a result, and count the calls."""
    with FETCHED.open("a") as calls:
        calls.write("fetched\n")
    return BIG


async def crash() -> str:
    """End this process the first time."""
    if CRASHED.exists():
        return "went on"
    CRASHED.touch()
    os._exit(3)


agent = durable_agent(FOLDER, URL, tools=[fetch, crash], engine=DBOSDurability())


async def work() -> str:
    """Run the agent, which DBOS records step by step."""
    return (await agent.run("Go.", conversation_id="conversation-1")).output


async def main() -> None:
    """Start the workflow, or wait for the one that DBOS recovers."""
    if CRASHED.exists():
        recovered = await DBOS.retrieve_workflow_async(WORKFLOW)
        ANSWER.write_text(await recovered.get_result())
        return
    with SetWorkflowID(WORKFLOW):
        await durable()


DBOS(
    config={
        "name": "coatcheck",
        "system_database_url": DATABASE,
        "application_version": "1",
        "run_admin_server": False,
    }
)
durable = DBOS.workflow()(work)
DBOS.launch()
asyncio.run(main())
DBOS.destroy()
