"""S3Storage against something that answers in S3's place: a login page, a proxy, another kind of server."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.config import Config

from coatcheck import CorruptContent, Kept, Offloader, S3Storage, StorageError, TextBlock
from coatcheck.core.references import content_digest, make_reference
from coatcheck.storage import s3
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import save
from tests.storage.seaweed import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOGIN = b"<html>Please log in to use this network.</html>"
STARTED = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
COMPLETED = b"<CompleteMultipartUploadResult>%s</CompleteMultipartUploadResult>"
FAILED = b'<Error xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Code>InternalError</Code><Key>k</Key></Error>'
QUICK = Config(retries={"mode": "standard", "total_max_attempts": 1})


class Answers(BaseHTTPRequestHandler):
    """Answers every request with 200; subclasses choose the body."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def answer(self) -> tuple[bytes, dict[str, str]]:
        return LOGIN, {"Content-Type": "text/html"}

    def do(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body, headers = self.answer()
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # noqa: N815 - http.server's names


class LoginPage(Answers):
    """A captive portal."""


class LongLoginPage(Answers):
    """A login page so long that it is read in parts."""

    def answer(self) -> tuple[bytes, dict[str, str]]:
        return LOGIN * 4_000, {"Content-Type": "text/html"}


class ForgetsTheEnd(Answers):
    """Accepts parts, and completes the upload without saying what became of it."""

    became = b""

    def answer(self) -> tuple[bytes, dict[str, str]]:
        asked = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "uploads" in asked:
            return STARTED, {"Content-Type": "application/xml"}
        if "partNumber" in asked:
            return b"", {"ETag": '"part"'}
        return COMPLETED % self.became, {"Content-Type": "application/xml"}


class SaysWhere(ForgetsTheEnd):
    """Accepts parts, and completes the upload with the answer of Ceph 16."""

    became = b"<Location>http://127.0.0.1/b/k</Location><Bucket>b</Bucket><Key>k</Key><ETag></ETag>"


class FailsAtTheEnd(ForgetsTheEnd):
    """Accepts parts, and answers 200 with an error that botocore misses because it is in a namespace."""

    def answer(self) -> tuple[bytes, dict[str, str]]:
        body, headers = super().answer()
        return FAILED if body.startswith(b"<Complete") else body, headers


class ForgetsAPart(ForgetsTheEnd):
    """Answers without an ETag for a part."""

    def answer(self) -> tuple[bytes, dict[str, str]]:
        body, headers = super().answer()
        headers.pop("ETag", None)
        return body, headers


@contextmanager
def served(kind: type[Answers]) -> Iterator[S3Storage]:
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield S3Storage(
                "bucket",
                boto_session=session(),
                endpoint_url=f"http://127.0.0.1:{server.server_port}",
                boto_client_config=QUICK,
            )
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Entry:
    # Above MULTIPART_BYTES the existing entry is looked up first; the answers here have no metadata to compare.
    monkeypatch.setattr(s3.S3Storage, "_head", lambda *_: None)
    return make_entry(noise(s3.MULTIPART_BYTES + 1))


def test_a_put_answered_without_an_etag_does_not_count_as_a_save() -> None:
    with served(LoginPage) as storage:
        with pytest.raises(StorageError, match=r"answer to PutObject has no ETag.*check endpoint_url"):
            save(storage, make_entry(b"content"))
        outcome = Offloader(storage).offload([TextBlock("word " * 20_000)], tool_name="t", scope="s")
    assert isinstance(outcome, Kept)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ForgetsTheEnd, "CompleteMultipartUpload has no ETag and no Location"),
        (FailsAtTheEnd, "CompleteMultipartUpload has no ETag and no Location"),
        (ForgetsAPart, "UploadPart has no ETag"),
    ],
)
def test_a_multipart_upload_not_answered_as_s3_does_is_not_a_save(
    kind: type[Answers], words: str, large: Entry
) -> None:
    with served(kind) as storage, pytest.raises(StorageError, match=f"answer to {words}"):
        save(storage, large)


def test_an_empty_etag_with_a_location_after_all_parts_counts_as_a_save(large: Entry) -> None:
    with served(SaysWhere) as storage:
        save(storage, large)


def test_large_content_answered_by_a_login_page_does_not_count_as_a_save() -> None:
    with served(LoginPage) as storage, pytest.raises(StorageError):
        save(storage, make_entry(noise(s3.MULTIPART_BYTES + 1)))


@pytest.mark.parametrize(
    "ask",
    [lambda storage: storage.entries(""), lambda storage: Offloader(storage).delete_scope("s")],
    ids=["entries", "delete_scope"],
)
def test_a_login_page_is_not_taken_for_a_listing(ask: Callable[[S3Storage], Any]) -> None:
    with served(LoginPage) as storage, pytest.raises(StorageError, match="ListObjectsV2 has no IsTruncated"):
        ask(storage)


@pytest.mark.parametrize("kind", [LoginPage, LongLoginPage])
def test_a_login_page_is_never_read_as_content(kind: type[Answers]) -> None:
    reference = make_reference("t", "s", digest=content_digest("text/plain", b"content"))
    with served(kind) as storage, pytest.raises(CorruptContent):
        Offloader(storage).retrieve(reference, scope="s")
