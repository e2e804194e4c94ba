"""What the bodies of all requests share, and those of all responses."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """A body that says who sends it, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    by: Name = "somebody with the token"


def json_response(body: object, status: int = 200) -> JSONResponse:
    """Return a response that nobody keeps."""
    return JSONResponse(body, status, {"cache-control": "no-store"})
