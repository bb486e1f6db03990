"""S3 storage: the core's, with the constructor and methods of Strands' own offloader storage, and its old objects.

Only what differs from ``coatcheck.S3Storage`` belongs here: ``store`` and ``retrieve``, and reading what Strands' own
offloader wrote under the same prefix. New content goes to ``v1`` below the prefix. boto3 comes with Strands.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coatcheck import S3Storage as CoreStorage
from coatcheck_strands.compat.cycles import FOLDER
from coatcheck_strands.compat.old_files import OLD_NAME
from coatcheck_strands.compat.storing import KnownScopes, StoresAndRetrieves, missing

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config

__all__ = ("S3Storage",)


class S3Storage(StoresAndRetrieves, CoreStorage):
    """Keeps content as objects of one bucket, with references such as ``s3://bucket/...``. Reads old ones too.

    Raises ``botocore.exceptions.ClientError`` if S3 refuses a request, and boto3's own error for any other failure.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        boto_session: Session | None = None,
        boto_client_config: Config | None = None,
        region_name: str | None = None,
    ) -> None:
        """Set the bucket. It must exist; nothing is sent before the first save or load.

        Raises:
            InvalidRequest: ``bucket`` or ``prefix`` is not a ``str``, or ``bucket`` is empty.

        """
        super().__init__(
            bucket, prefix, boto_session=boto_session, boto_client_config=boto_client_config, region_name=region_name
        )
        self.known_scopes: KnownScopes = KnownScopes()

    def _shown(self, name: str, *, content_type: str) -> str:
        del content_type
        # The object's address or, if the core made the name, the whole name, because it contains the scope.
        shown = name if "_scope_" in name else name.rpartition("_")[2]
        return f"s3://{self._bucket}/{self._folder}{FOLDER}/{shown}"

    def _file_in(self, reference: str) -> str:
        head = f"s3://{self._bucket}/{self._folder}{FOLDER}/"
        return reference.removeprefix(head) if reference.startswith(head) else ""

    async def _old(self, reference: str) -> tuple[bytes, str]:
        return await asyncio.to_thread(self._old_object, reference)

    def _old_object(self, reference: str) -> tuple[bytes, str]:
        prefix = f"{self._prefix}/".lstrip("/")
        key = reference.removeprefix(f"s3://{self._bucket}/")
        if not key.startswith(prefix) or not OLD_NAME.fullmatch(key.removeprefix(prefix)):
            raise missing(reference)
        client = self._client()
        try:
            found = client.get_object(Bucket=self._bucket, Key=key)
        except client.exceptions.NoSuchKey:
            raise missing(reference) from None
        return found["Body"].read(), found["ContentType"]
