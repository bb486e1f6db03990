"""An ADK agent with the plugin."""

import os

from google.adk.agents import LlmAgent
from google.adk.apps import App

from coatcheck import FileStorage
from coatcheck.testing.samples import numbered_lines
from coatcheck_adk import OffloadPlugin


def fetch() -> str:
    """Give a large result."""
    return numbered_lines(2_000)


root_agent = LlmAgent(name="night", model="gemini-scripted", tools=[fetch])
app = App(name="night", root_agent=root_agent, plugins=[OffloadPlugin(FileStorage(os.environ["COATCHECK_ARTIFACTS"]))])
