"""In which of the contract's deliveries an agent is run.

An adapter knows whether a call is sync or async. It does not know the storage: the core talks to that, and the toy
adapter's tests run each scenario in all four deliveries. So here each way is tried with one storage, and with both
where the run is thorough.
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
"""For a second way into code of an adapter that another way runs sync and async; its spans are looked at in both."""
