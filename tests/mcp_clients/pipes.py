"""The command of a server that runs in another process. Run as a program, not imported.

It hands its stdin and stdout to the process that listens on a Unix socket, and ends when that process is done.
"""

from __future__ import annotations

import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    socket.send_fds(connection, [b"!"], [0, 1])
    connection.recv(1)
