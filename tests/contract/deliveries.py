"""The deliveries of the contract that each framework's tests run.

An adapter knows whether a call is sync or async, but not which storage is used: only the core talks to the storage, and
the toy adapter's tests run each scenario in all four deliveries. So the tests here run sync and async with one storage
each, and with both in a thorough run.
"""

from __future__ import annotations

import os

from coatcheck.testing.adapter import DELIVERIES

__all__ = ("ASYNC_ONLY", "ASYNC_ON_FILES", "SYNC_ONLY", "SYNC_ON_FILES")

_IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"

SYNC_ON_FILES = DELIVERIES if _IS_THOROUGH else ("sync, files", "async, memory")
ASYNC_ON_FILES = DELIVERIES if _IS_THOROUGH else ("sync, memory", "async, files")
ASYNC_ONLY = DELIVERIES[1::2] if _IS_THOROUGH else ("async, files",)
SYNC_ONLY = DELIVERIES if _IS_THOROUGH else ("sync, files",)
"""For a second entry point to code that the first one runs sync and async. The tests of spans run both."""
