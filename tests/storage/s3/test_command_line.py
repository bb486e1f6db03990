"""The command line on a bucket: everything works as on a folder, with the usual AWS environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, Offloader, S3Storage, TextBlock
from tests.cli.running import answered, run
from tests.storage.seaweed import BUCKET, KEYS

if TYPE_CHECKING:
    from coatcheck.storage.protocol import Stored
    from tests.storage.seaweed import Server

pytestmark = pytest.mark.no_cover  # other tests cover every line of the storage that these commands run

LINES = b"words of a large result\n" * 50_000


@pytest.fixture
def url(server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COATCHECK_STORAGE", f"s3://{BUCKET}/{prefix}")
    monkeypatch.delenv("COATCHECK_SCOPE", raising=False)
    return f"s3://{BUCKET}/{prefix}"


def test_agents_and_people_read_what_the_other_stored(url: str, storage: S3Storage) -> None:
    offloader = Offloader(storage)
    outcome = offloader.offload([TextBlock(LINES.decode())], tool_name="search", scope="thread-42")
    (reference,) = outcome.references

    assert run("cat", reference.id, "--scope", "thread-42").stdout_bytes == LINES
    assert run("cat", reference.id).exit_code == 1
    assert (
        "> 31337|" in run("get", reference.id, "--scope", "thread-42", "--pattern", "large", "--lines", "31337").stdout
    )
    ours = answered("put", "--storage", url, given=b"\x89PNG\0")
    assert offloader.load(ours["reference"]).data == b"\x89PNG\0"


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("command", ["ls", "stats", "cat"])
def test_a_failing_command_names_a_missing_bucket_on_one_line(command: str) -> None:
    arguments = [answered("put", given=LINES)["reference"]] if command == "cat" else []

    ran = run(command, *arguments, "--storage", "s3://no-such-bucket-anywhere")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "(S3Storage) failed: NoSuchBucket: An error occurred" in ran.stderr
    assert ran.stderr.endswith(", in bucket 'no-such-bucket-anywhere'\n")
    assert ran.stderr.count("\n") == 1


def test_ls_show_stats_sweep_and_rm_work_on_a_bucket(url: str) -> None:
    reference = answered("put", given=LINES)["reference"]
    answered("put", "--scope", "other", given=b"words")

    (row,) = answered("ls")
    assert (row["bytes"], row["reference"].split("-")[1:]) == (len(LINES), reference.split("-")[1:])
    assert answered("show", reference)["lines"] == 50_000
    assert [answered("stats")[name] for name in ("contents", "entries")] == [2, 3]
    assert answered("sweep", "--max-age", "1d", "--dry-run")["entries"] == 0
    assert answered("rm", "--scope", "default", "--yes")["deleted"] == 1
    assert run("get", reference).exit_code == 1
    assert answered("stats")["contents"] == 1


def test_ls_looks_up_the_contents_of_one_page_only(
    url: str, storage: S3Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        block = TextBlock(f"words {number}")
        Offloader(storage).offload([block], tool_name="search", policy=Always(), scope="default")
    monkeypatch.setattr("coatcheck.engine.listing.LONGEST_PAGE", 2)
    asked: list[str] = []
    load_range = S3Storage.load_range

    def counted(storage: S3Storage, key: str, **range_: int) -> Stored | None:
        asked.append(key)
        return load_range(storage, key, **range_)

    monkeypatch.setattr(S3Storage, "load_range", counted)
    without, of_tool = run("ls"), run("ls", "--tool", "search")

    assert [len(ran.stdout.splitlines()) - 1 for ran in (without, of_tool)] == [5, 2]
    assert "The tool and type of 3 contents are unknown: --look-up-all asks for each." in without.stderr
    assert without.stderr == of_tool.stderr
    assert ", as far as it is known.\nThe tool and type of 3 contents" in run("ls", "--tool", "grep").stderr
    assert len(asked) == 2 + 2 + 2
    assert [len(answered("ls", "--look-up-all", *more)) for more in ((), ("--tool", "search"))] == [5, 5]
    assert len(asked) == 2 + 2 + 2 + 5 + 5
    assert run("ls", "--look-up-all").stderr == ""


def test_verify_reads_every_object(url: str, server: Server, prefix: str) -> None:
    answered("put", given=LINES)
    well = answered("verify")
    client = server.client()
    key = next(each["Key"] for each in client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"])
    kept = client.head_object(Bucket=BUCKET, Key=key)
    client.put_object(Bucket=BUCKET, Key=key, Body=b"other", ContentType=kept["ContentType"], Metadata=kept["Metadata"])

    ran = run("verify")

    assert (well["entries"], well["damaged"]) == (2, [])
    assert ran.exit_code == 1
    assert key.removeprefix(f"{prefix}/v1/") in ran.stdout


def test_a_prefix_may_hold_any_character(url: str) -> None:
    odd = f"{url}/a#b?c d"

    reference = answered("put", "--storage", odd, given=b"words")["reference"]

    assert run("cat", reference, "--storage", odd).stdout == "words"
    assert run("cat", reference, "--storage", f"{url}/a").exit_code == 1


def test_a_missing_bucket_is_reported_on_one_line(url: str) -> None:
    ran = run("ls", "--storage", "s3://no-such-bucket/prefix")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "NoSuchBucket" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_url_without_a_bucket_is_refused(url: str) -> None:
    ran = run("ls", "--storage", "s3://")

    assert ran.exit_code == 2
    assert "needs the name of a bucket" in ran.stderr
