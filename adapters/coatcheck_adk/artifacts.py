"""An ADK artifact service as a storage: content next to an app's artifacts, in memory, in files or in a bucket.

    app_name, user_id   our own             filename   user:<key>
    artifact            in the format of ``StrandsStorageBridge``: type, metadata and time of the save, then the content

Only the calls to the service belong here. That bridge implements the rest of a storage.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from google.genai.types import Blob, Part

from coatcheck import InvalidRequest, StrandsStorageBridge

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.artifacts.base_artifact_service import BaseArtifactService

__all__ = ("ArtifactServiceBridge",)

_OF_THE_USER = "user:"
"""The prefix of artifacts that belong to no session, because an app's sessions and users are not our scopes."""

_METHODS = ("save_artifact", "load_artifact", "delete_artifact", "list_artifact_keys")


class ArtifactServiceBridge(StrandsStorageBridge):
    """Keeps content in an ADK artifact service, as artifacts of a separate app and user.

    No user of your app sees them among their own artifacts. Scopes keep conversations apart, as in every storage. A
    service keeps every version of an artifact, so each further save of the same content stores one more copy of it,
    until all are deleted. Listing reads every entry of a scope.
    """

    def __init__(
        self,
        service: BaseArtifactService,
        *,
        app_name: str = "coatcheck",
        user_id: str = "coatcheck",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Set the service, the app and user under which it keeps our artifacts, and the clock that dates each save.

        Raises:
            InvalidRequest: ``service`` is not an artifact service, or a name is not a non-empty ``str``.

        """
        if isinstance(service, type) or not all(callable(getattr(service, method, None)) for method in _METHODS):
            msg = f"ArtifactServiceBridge needs an artifact service, such as InMemoryArtifactService(), not {service!r}"
            raise InvalidRequest(msg)
        for what, name in (("app_name", app_name), ("user_id", user_id)):
            if not isinstance(name, str) or not name:
                msg = f"{what} must be a non-empty str, not {name!r}"
                raise InvalidRequest(msg)
        super().__init__(_Artifacts(service, app_name, user_id), prefix=_OF_THE_USER, clock=clock)
        self._service = service

    def __repr__(self) -> str:
        return f"ArtifactServiceBridge({type(self._service).__name__})"


class _Artifacts:
    """The artifacts of one user, as bytes by name."""

    def __init__(self, service: BaseArtifactService, app_name: str, user_id: str) -> None:
        self._service = service
        self._owner: dict[str, Any] = {"app_name": app_name, "user_id": user_id}

    async def write(self, key: str, data: bytes) -> None:
        artifact = Part(inline_data=Blob(data=data, mime_type="application/octet-stream"))
        await self._service.save_artifact(**self._owner, filename=key, artifact=artifact)

    async def read(self, key: str) -> bytes | None:
        artifact = await self._service.load_artifact(**self._owner, filename=key)
        return None if artifact is None or artifact.inline_data is None else artifact.inline_data.data

    async def delete(self, key: str) -> None:
        await self._service.delete_artifact(**self._owner, filename=key)

    async def list(self, query: str) -> list[str]:
        return [name for name in await self._service.list_artifact_keys(**self._owner) if name.startswith(query)]
