"""An app for the API server of Google ADK, which looks for this layout."""
