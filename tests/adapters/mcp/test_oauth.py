"""``--oauth``: a login at a server that requires one; a program stands in for the browser and the person."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coatcheck import RETRIEVAL_TOOL
from tests.adapters.mcp.ports import reserved_port, wait_until_listening
from tests.adapters.mcp.processes import PATIENCE, Process

if TYPE_CHECKING:
    from collections.abc import Iterator

BROWSER = """
import sys, urllib.request
print("a browser that writes to standard output")
with open("opened", "a") as opened:
    opened.write(sys.argv[1] + "\\n")
while True:
    try:
        urllib.request.urlopen(sys.argv[1]).read()
    except urllib.error.URLError:
        continue  # nobody listens yet for what the server sends back
    break
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    program = str(Path(__file__).parent / "guarded_server.py")
    with reserved_port() as port, (tmp_path / "said").open("wb") as said:
        server = subprocess.Popen([sys.executable, program, str(port)], stdout=said, stderr=said)
        try:
            wait_until_listening(server, port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()
            server.wait(PATIENCE)


def test_a_person_logs_in_once_for_each_start_and_the_token_is_renewed(url: str, tmp_path: Path) -> None:
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER, encoding="utf-8")
    with Process(
        tmp_path, options=["--url", url, "--oauth"], env={"BROWSER": f"{sys.executable} {browser} %s"}
    ) as client:
        assert client.shake_hands()["result"]["serverInfo"]["name"] == "guarded"
        assert client.said(client.call("who")) == "coatcheck"
        while client.said(client.call("renewals")) == "0":  # until three seconds have passed
            assert client.popen.poll() is None
        (reference,) = client.call("big")["result"]["_meta"]["coatcheck"]["references"]
        assert "line of a log" in client.said(client.call(RETRIEVAL_TOOL, reference=reference, pattern="log"))
        client.leave()
    (address,) = (tmp_path / "opened").read_text(encoding="utf-8").splitlines()
    assert f"to log in, a browser opens {address}\n" in client.stderr


def test_without_oauth_the_error_says_that_a_login_is_missing(url: str, tmp_path: Path) -> None:
    with Process(tmp_path, options=["--url", url]) as client:
        assert "answered HTTP 401: pass a token by --header or --oauth" in client.shake_hands()["error"]["message"]
