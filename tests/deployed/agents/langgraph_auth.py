"""Who may do what on LangGraph's server: everybody may run graphs, nobody may look into the store from outside."""

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate() -> str:
    """Return who sent a request."""
    return "ada"


@auth.on.store
async def keep_out(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """Refuse requests for the store; graphs reach it without one."""
    del ctx, value
    return False
