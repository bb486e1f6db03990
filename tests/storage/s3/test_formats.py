"""Content that earlier versions stored in a bucket is read."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

from coatcheck import S3Storage
from tests.formats.kept import check_storage, every_version, left_by
from tests.storage.seaweed import BUCKET, Server

if TYPE_CHECKING:
    from pathlib import Path


@every_version
def test_content_of_an_earlier_version_is_read(version: str, server: Server, tmp_path: Path) -> None:
    left = left_by(version, "s3", tmp_path)
    prefix = f"formats-{version}"
    client = server.client()
    for one in json.loads((tmp_path / "objects.json").read_text()):
        key = f"{prefix}/{one['Key'].partition('/')[2]}"
        client.put_object(**{**one, "Bucket": BUCKET, "Key": key, "Body": b64decode(one["Body"])})

    check_storage(S3Storage(BUCKET, prefix, **server.settings()), left)
