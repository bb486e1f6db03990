"""Test contracts for authors of other storages and adapters: subclass one, give it a fixture, run pytest.

    from coatcheck.testing import StorageContract, ReadsRangesContract   # see coatcheck.testing.storage
    from coatcheck.testing import AdapterContract, Harness               # see coatcheck.testing.adapter
    from coatcheck.testing import ScriptedServer                         # the scripted model behind OpenAI's API

``coatcheck.testing.toy`` is a whole adapter with its harness, to copy.

Needs only pytest. A new version of coatcheck may add tests: pin the version if new tests must not fail your build.
"""

from __future__ import annotations

try:
    import pytest
except ImportError as exc:
    _msg = "coatcheck.testing needs pytest. Install it with: pip install pytest"
    raise ImportError(_msg) from exc

# Must run before the imports below, so that a failing assertion of the contract shows its values in other projects too.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module}" for module in ("adapter", "capabilities", "storage", "suite", "trial"))
)

from coatcheck.testing.adapter import AdapterContract  # noqa: E402 - see above
from coatcheck.testing.capabilities import (  # noqa: E402
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    LocalPathContract,
    ReadsRangesContract,
    SweepsContract,
)
from coatcheck.testing.harness import (  # noqa: E402
    Harness,
    Model,
    ModelCall,
    NamesScopes,
    Received,
    Returned,
    Run,
    Transcript,
)
from coatcheck.testing.scenario import Call, Capability, Read, Scenario  # noqa: E402
from coatcheck.testing.scenarios import SCENARIOS  # noqa: E402
from coatcheck.testing.server import Conversation, Response, ScriptedServer  # noqa: E402
from coatcheck.testing.storage import StorageContract  # noqa: E402

__all__ = (
    "SCENARIOS",
    "AdapterContract",
    "Call",
    "Capability",
    "Conversation",
    "DeletesContract",
    "DeletesManyContract",
    "Harness",
    "ListsContract",
    "ListsPagesContract",
    "LocalPathContract",
    "Model",
    "ModelCall",
    "NamesScopes",
    "Read",
    "ReadsRangesContract",
    "Received",
    "Response",
    "Returned",
    "Run",
    "Scenario",
    "ScriptedServer",
    "StorageContract",
    "SweepsContract",
    "Transcript",
)
