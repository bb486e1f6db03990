"""A storage in an S3 bucket: every process on every host with the same bucket reads every reference.

    <prefix>/v1/<scope>/<digest>     the content; its type and its metadata are those of the object

Only what is specific to S3 belongs here. boto3 is imported when a storage is created, so this module loads without the
extra.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from coatcheck.core.errors import InvalidRequest, StorageError, describe_error, install_command
from coatcheck.core.forks import ForkSafeLock, loading
from coatcheck.core.references import Key, is_storage_key
from coatcheck.core.settings import NETWORK_THREADS
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boto3.session import Session
    from botocore.config import Config
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef, HeadObjectOutputTypeDef, ListObjectsV2OutputTypeDef

__all__ = ("S3Storage",)

MULTIPART_BYTES = 16 << 20
"""Larger content is sent in parts of this size, so that a failure costs one part and not everything sent so far."""

ATTEMPTS = 5
"""Attempts for one request, with growing pauses. botocore counts them, and pauses at most about 15 s in all."""

READ_ATTEMPTS = 3
"""Requests for a content whose transfer breaks off: botocore itself retries only the request."""

CONNECT_SECONDS = 5
READ_SECONDS = 15
"""How long S3 may be silent in one attempt. The two together are below the engine's 30 s, so that there is a second
attempt. A call that was given up occupies its thread for up to about six minutes with all attempts, and longer if bytes
trickle in: botocore has no limit for the whole call."""

_REFUSED_BECAUSE_THERE = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
_KNOWS_NO_CONDITIONS = "NotImplemented"

_ANSWERED_WITH = {
    "PutObject": ("ETag",),
    "UploadPart": ("ETag",),
    "CompleteMultipartUpload": ("ETag", "Location"),  # Ceph 16 leaves the ETag empty; errors have a Key too
    "ListObjectsV2": ("IsTruncated",),
}
"""Fields that S3's answer always has; one of them is enough. If all are missing, a proxy or a login page answered in
S3's place: lost content would count as saved, and a scope that is not empty as empty."""

_FIRST_FAILURE = 300
"""From this HTTP status on, botocore itself raises an error."""

_METADATA_KEY = re.compile(r"[a-z0-9-]{1,64}")
_NOT_FOR_A_HEADER = re.compile(r"[^!-$&-~ ]|^ +| +$")
"""Characters that a header would not carry unchanged: all but visible ASCII and spaces inside. ``%`` is the escape."""

_HTTP = re.compile(r"https?://", re.IGNORECASE)

_EMPTY = "%"
"""Stands for an empty str, which servers drop or change. No escaped str looks like this."""


class S3Storage:
    """Keeps content as objects of one bucket, all under ``<prefix>/v1/``.

    Content type and metadata are the object's own. Ranges are ranged GETs. Content above 16 MB is sent in parts. Saving
    an existing entry sends it again, which renews the age that a lifecycle rule counts. Safe for many threads, before
    and after a fork; each calling thread makes one request at a time. Every method raises boto3's own errors too, and
    ``StorageError`` if something else answers in S3's place.

    Needs the permissions ``s3:PutObject``, ``s3:GetObject`` and ``s3:ListBucket``: without the last one, S3 answers
    "denied" for an object that does not exist. ``delete`` and ``sweep`` need ``s3:DeleteObject``, ``tags`` need
    ``s3:PutObjectTagging``.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        boto_session: Session | None = None,
        boto_client_config: Config | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Choose the bucket. It must exist; nothing is sent before the first save or load.

        Args:
            bucket: the name of the bucket, or the ARN of an access point.
            prefix: the start of all object keys, such as ``"agents/support"``.
            boto_session: the source of credentials. None: boto3's usual places.
            boto_client_config: overrides our own configuration: 5 attempts, 5 s to connect, 15 s of silence.
            region_name: the region of the bucket, if the session does not name it.
            endpoint_url: the address of another server that speaks S3.
            tags: object tags, for lifecycle rules that select by tag.

        Raises:
            ImportError: boto3 is not installed.
            InvalidRequest: ``bucket`` or ``prefix`` is not a str, ``bucket`` is empty or an address,
                ``endpoint_url`` has no ``http://`` or ``https://``, or ``tags`` do not map str to str.

        """
        try:
            with loading:
                import boto3  # noqa: F401, PLC0415 - only those who use it pay for it
        except ImportError as error:
            msg = f"S3Storage needs boto3. Install it with: {install_command('coatcheck[s3]')}"
            raise ImportError(msg) from error
        if not isinstance(bucket, str) or not bucket or not isinstance(prefix, str):
            msg = f"S3Storage needs the name of a bucket and a prefix, both as str, not {bucket!r} and {prefix!r}"
            raise InvalidRequest(msg)
        if "/" in bucket and not bucket.startswith("arn:"):  # the ARN of an access point may hold one
            msg = f"S3Storage needs the name of a bucket alone, as in S3Storage('bucket', 'prefix'), not {bucket!r}"
            raise InvalidRequest(msg)
        if endpoint_url is not None and not (isinstance(endpoint_url, str) and _HTTP.match(endpoint_url)):
            msg = f"endpoint_url must begin with http:// or https://, not {endpoint_url!r}"
            raise InvalidRequest(msg)
        if tags is not None and not _is_of_text(tags):
            msg = f"tags must map names to values, both str, as in {{'team': 'support'}}, not {tags!r}"
            raise InvalidRequest(msg)
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._folder = f"{self._prefix}/v1/".lstrip("/")
        self._session = boto_session
        self._config = boto_client_config
        self._region_name = region_name
        self._endpoint_url = endpoint_url
        self._tagging = {"Tagging": urlencode(tags, quote_via=quote)} if tags else {}
        self._clients: dict[int, S3Client] = {}
        """The client of this process, by process id, once it is created."""

    def __deepcopy__(self, memo: object) -> S3Storage:
        """Return the storage itself: connections cannot be copied."""
        return self

    def __repr__(self) -> str:
        return f"S3Storage({self._bucket!r}, {self._prefix!r})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry whole or not at all; an existing one is sent again, which refreshes its time.

        If two different contents are saved under one key at the same moment, a server with conditional writes, such as
        S3, tells them apart if they have at most 16 MB. Otherwise the later one stays, and a whole read finds it
        corrupt.

        Raises:
            StorageError: the key is malformed, another content has it, or S3 cannot keep such metadata.

        """
        place = self._place(key)
        kept = {name: _to_header(value) for name, value in metadata.items() if _METADATA_KEY.fullmatch(name)}
        if len(kept) != len(metadata):
            msg = f"S3 keeps metadata only under lower-case names, not under all of {sorted(metadata)}"
            raise StorageError(msg)
        described: dict[str, Any] = {"ContentType": _to_header(content_type), "Metadata": kept, **self._tagging}
        if len(content) <= MULTIPART_BYTES and self._create(place, content, described):
            return
        existing = self._head(place)
        if existing is not None:
            refuse_other_content(key, _metadata(existing), metadata)
        self._upload(place, content, described)

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None.

        Raises:
            StorageError: the key is malformed.

        """
        place = self._place(key)
        found = self._get(place)
        if found is None:
            return None
        response, content = found
        return _stored(response, content, size=len(content))

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None.

        Raises:
            StorageError: the key is malformed.

        """
        place = self._place(key)
        # A range of 0 bytes cannot be requested. HEAD would do, but reports a missing bucket like a missing object.
        last = start + max(length, 1) - 1
        try:
            found = self._get(place, Range=f"bytes={start}-{last}")
        except self._client().exceptions.ClientError as error:
            if _code(error) != "InvalidRange":
                raise
            beyond = self._head(place)
            return None if beyond is None else _stored(beyond, b"", size=beyond["ContentLength"])
        if found is None:
            return None
        response, content = found
        # "bytes 10-19/200". A server without ranges, or a login page, sends everything, and no such header.
        _, slash, size = response.get("ContentRange", "").partition("/")
        if not slash:
            return replace(_stored(response, content[start : start + length], size=len(content)), whole=content)
        return _stored(response, content[:length], size=int(size))

    def delete(self, key: str) -> None:
        """Remove the entry, if it exists.

        Raises:
            StorageError: the key is malformed.

        """
        place = self._place(key)
        self._client().delete_object(**place)

    def delete_many(self, keys: Sequence[str]) -> Sequence[str]:
        """Remove the entries in one request, 1,000 at most, as S3 takes them; return those that S3 left.

        The request asks for the keys that are gone, not only (``Quiet``) for those that are left: a server that does
        not name a key has not said that it deleted it. A server that refuses the request, such as Google's, which lacks
        it, leaves all.

        Raises:
            StorageError: a key is malformed.

        """
        names = {key: self._place(key)["Key"] for key in keys}
        client = self._client()
        try:
            answer = client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": [{"Key": name} for name in names.values()]}
            )
        except client.exceptions.ClientError:
            return keys
        gone = {found.get("Key") for found in answer.get("Deleted", ())}
        return [key for key, name in names.items() if name not in gone]

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``. S3 gives times in whole seconds."""
        pages = self._client().get_paginator("list_objects_v2")
        return [
            listed
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._folder + prefix)
            for listed in self._listed(page)
        ]

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        """Return a page of the entries whose key starts with ``prefix``, for one request.

        S3 lists by key, 1,000 at a time, and without metadata. To find the newest of more, all would have to be listed,
        so a page looks at only 1,000 keys: up to 1,000 entries come newest first; if there are more, each batch of
        1,000 does. ``after`` says that there may be more.

        Raises:
            InvalidRequest: ``after`` recognizably did not come from a page.

        """
        start, _, rest = (after or "").partition(" ")
        start = unquote(start)
        where: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._folder + prefix}
        if start:
            where["StartAfter"] = self._folder + start
        answer = self._client().list_objects_v2(**where)
        found = newest_first(self._listed(answer), limit=limit, after=rest or None)
        if found.after is not None:
            return replace(found, after=f"{quote(start)} {found.after}")
        contents = answer.get("Contents", ())
        if not answer["IsTruncated"] or not contents:
            return found
        return replace(found, after=quote(contents[-1]["Key"].removeprefix(self._folder)))

    def describe_error(self, error: Exception) -> str:
        """Return boto3's message, which names the request and quotes no content, and the bucket, which it may lack.

        The message of any other error, such as one from a subclass that encrypts, is left out.
        """
        with loading:
            from boto3.exceptions import Boto3Error  # noqa: PLC0415 - see __init__
            from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as above

        is_of_boto3 = isinstance(error, Boto3Error | BotoCoreError | ClientError)
        words = f"{type(error).__name__}: {error}" if is_of_boto3 else describe_error(error)
        return f"{words}, in bucket {self._bucket!r}"

    def _listed(self, answer: ListObjectsV2OutputTypeDef) -> Iterator[Listed]:
        for found in answer.get("Contents", ()):
            key = found["Key"].removeprefix(self._folder)
            if is_storage_key(key):
                yield Listed(key=key, size=found["Size"], modified=found["LastModified"].timestamp())

    def _place(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Key": f"{self._folder}{Key.parse(key)}"}

    def _create(self, place: dict[str, Any], content: bytes, described: dict[str, Any]) -> bool:
        """Save a new entry in one request; return False if one exists, or if the server lacks conditional writes."""
        client = self._client()
        try:
            client.put_object(**place, Body=content, IfNoneMatch="*", **described)
        except client.exceptions.ClientError as error:
            if _code(error) not in {*_REFUSED_BECAUSE_THERE, _KNOWS_NO_CONDITIONS}:
                raise
            return False
        return True

    def _upload(self, place: dict[str, Any], content: bytes, described: dict[str, Any]) -> None:
        """Save an entry, replacing any other, in parts if it is large; a transfer that fails removes its parts."""
        with loading:
            from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - see __init__

        # In parts, but on this thread: callers have threads of their own, whose number is bounded.
        config = TransferConfig(
            multipart_threshold=MULTIPART_BYTES, multipart_chunksize=MULTIPART_BYTES, use_threads=False
        )
        self._client().upload_fileobj(BytesIO(content), **place, ExtraArgs=described, Config=config)

    def _head(self, place: dict[str, Any]) -> HeadObjectOutputTypeDef | None:
        client = self._client()
        try:
            return client.head_object(**place)
        except client.exceptions.ClientError as error:
            if _code(error) != "404":  # an answer to HEAD has no body, and so no other code
                raise
            return None

    def _get(self, place: dict[str, Any], **part: Any) -> tuple[GetObjectOutputTypeDef, bytes] | None:  # noqa: ANN401
        client = self._client()
        attempt = 1
        while True:
            try:
                response = client.get_object(**place, **part)
            except client.exceptions.NoSuchKey:
                return None
            try:
                return response, response["Body"].read()
            except Exception:
                if attempt == READ_ATTEMPTS:
                    raise
                attempt += 1

    def _client(self) -> S3Client:
        """Return this process's client, created on first use. A forked child shares no connection with its parent."""
        process = os.getpid()
        if process not in self._clients:
            with _making_clients.held, loading:  # creating a client imports parts of botocore
                if process not in self._clients:
                    self._clients = {process: self._make_client()}
        return self._clients[process]

    def _make_client(self) -> S3Client:
        with loading:
            import boto3  # noqa: PLC0415 - see __init__
            from botocore.config import Config  # noqa: PLC0415 - see __init__

        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=NETWORK_THREADS,
            user_agent_extra="coatcheck",
        )
        if self._config is not None:
            config = config.merge(self._config)
        session = self._session or boto3.session.Session()
        client = session.client("s3", config=config, region_name=self._region_name, endpoint_url=self._endpoint_url)
        for request in _ANSWERED_WITH:
            client.meta.events.register(f"after-call.s3.{request}", _require_answer_of_s3)
        return client


def _is_of_text(tags: object) -> bool:
    return isinstance(tags, Mapping) and all(isinstance(part, str) for pair in tags.items() for part in pair)


def _require_answer_of_s3(*, http_response: Any, parsed: Mapping[str, Any], model: Any, **_: object) -> None:  # noqa: ANN401 - botocore's own
    """Refuse a successful answer that cannot be S3's.

    Raises:
        StorageError: it lacks the fields that S3's answer always has.

    """
    wanted = _ANSWERED_WITH[model.name]
    if http_response.status_code < _FIRST_FAILURE and all(parsed.get(name) in {None, ""} for name in wanted):
        msg = (
            f"the answer to {model.name} has no {' and no '.join(wanted)}, so it is not from S3: check endpoint_url,"
            " and what proxy or login page is in between"
        )
        raise StorageError(msg)


def _stored(response: GetObjectOutputTypeDef | HeadObjectOutputTypeDef, content: bytes, *, size: int) -> Stored:
    content_type = _from_header(response["ContentType"])
    return Stored(content=content, content_type=content_type, metadata=_metadata(response), size=size)


def _metadata(response: GetObjectOutputTypeDef | HeadObjectOutputTypeDef) -> dict[str, str]:
    return {name: _from_header(value) for name, value in response["Metadata"].items()}


def _to_header(text: str) -> str:
    """Return ``text`` in a form that a header carries unchanged; usually the same text."""
    return _NOT_FOR_A_HEADER.sub(lambda found: quote(found.group(), safe="", errors="surrogatepass"), text) or _EMPTY


def _from_header(text: str) -> str:
    return "" if text == _EMPTY else unquote(text, errors="surrogatepass")


def _code(error: Any) -> str:  # noqa: ANN401 - botocore's ClientError, which cannot be named without boto3
    return str(error.response.get("Error", {}).get("Code", ""))


_making_clients = ForkSafeLock()
"""One for all storages. Many threads may use one client, but two threads must not ask one session for clients."""
