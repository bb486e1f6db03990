"""The access rules of LangGraph's server: everybody may run graphs, nobody may read the store from outside."""

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate() -> str:
    """Return the identity of a request's sender."""
    return "ada"


@auth.on.store
async def keep_out(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """Refuse requests for the store. Graphs reach it without a request."""
    del ctx, value
    return False
