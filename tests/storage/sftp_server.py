"""A real SFTP server for tests: asyncssh's, in a process of its own, on a loopback port. It lets anyone in.

``running_sftp`` starts it, and ``sftp`` connects to it. ``python sftp_server.py PORT`` is the server itself.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import asyncssh
from fsspec.implementations.sftp import SFTPFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("running_sftp", "sftp")

REFUSES = "--refuse"


@contextmanager
def running_sftp(port: int = 0, *, lets_in: bool = True) -> Iterator[int]:
    """Start a server, on a free port unless one is given; yield its port, and kill it at the end.

    With ``lets_in=False`` it refuses every login.

    Raises:
        RuntimeError: it did not start.

    """
    command = [sys.executable, __file__, str(port), *(() if lets_in else (REFUSES,))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            if not said:
                msg = "the SFTP server did not start: see what it said on standard error"
                raise RuntimeError(msg)
            yield int(said)
        finally:
            process.kill()


def sftp(port: int, **options: Any) -> SFTPFileSystem:  # noqa: ANN401 - whatever fsspec takes
    """Return fsspec's own filesystem on the server."""
    login = {"username": "any", "password": "any", "look_for_keys": False, "allow_agent": False}
    return SFTPFileSystem("127.0.0.1", port=port, **login, **options)


class Open(asyncssh.SSHServer):
    """Lets anyone in."""

    def begin_auth(self, username: str) -> bool:
        """Require no authentication."""
        return False


class Closed(asyncssh.SSHServer):
    """Lets nobody in."""

    def password_auth_supported(self) -> bool:
        """Ask for a password."""
        return True

    def validate_password(self, username: str, password: str) -> bool:
        """Reject every password."""
        return False


async def main(port: int, *, lets_in: bool) -> None:
    """Print the port, and serve until standard input ends, as it does when the parent process is gone."""
    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=Open if lets_in else Closed,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        sftp_factory=True,
        reuse_address=True,
    )
    print(server.get_port(), flush=True)  # noqa: T201 - the parent process reads it
    await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), lets_in=REFUSES not in sys.argv))
