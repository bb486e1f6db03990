"""64 agents again, with an S3 bucket on a real server (SeaweedFS), 50 ms away: a proxy adds that latency.

Server and proxy are those of the tests, in separate processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.processes import Processes
from benchmarks.systems import ON_S3
from benchmarks.works.many_agents import measure_agents

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ("WORK", "measure")

WORK = "64 agents on S3"
LATENCY_SECONDS = 0.05


def measure(bench: Bench) -> None:
    """Measure the systems that have an S3 storage."""
    from tests.storage.faulty_proxy import running_proxy_process  # noqa: PLC0415 - only this work needs boto3
    from tests.storage.seaweed import BUCKET, running_server, session  # noqa: PLC0415

    folder = bench.folder / "server"
    folder.mkdir()
    with (
        running_server(folder) as server,
        running_proxy_process(server.endpoint, latency_seconds=LATENCY_SECONDS) as endpoint,
    ):
        credentials = session().get_credentials()
        assert credentials is not None
        variables = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
            "BENCHMARKS_BUCKET": BUCKET,
            "TMPDIR": str(bench.folder),
        }
        with Processes(ON_S3, bench.environments, variables=variables) as processes:
            measure_agents(bench, WORK, processes.all())
