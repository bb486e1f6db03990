"""A FastMCP server with a tool for each kind of result. Run as a program, not imported."""

from __future__ import annotations

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image

server = FastMCP("records")


@server.tool
def read_log(number: int) -> str:
    return "".join(f"line {line} of log {number}\n" for line in range(1, 4_001))


@server.tool
def list_rows() -> dict[str, list[dict[str, object]]]:
    return {"rows": [{"id": number, "name": f"row {number}"} for number in range(3_000)]}


@server.tool
def draw() -> Image:
    return Image(data=bytes(range(256)) * 400, format="png")


@server.tool
def fail() -> str:
    message = "no such record"
    raise ToolError(message)


if __name__ == "__main__":
    server.run(show_banner=False)
