"""What the bodies of all requests share, and those of all responses."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from agent_runner.asking.arguments import explain_unknown

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """A body that says who sends it, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    by: Name = "somebody with the token"

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, value: object) -> object:
        for name in value if isinstance(value, dict) else ():
            if name not in cls.model_fields:
                # Not a ValueError, which pydantic would wrap in words of its own.
                raise HTTPException(422, explain_unknown(str(name), cls.model_fields))
        return value


def json_response(body: object, status: int = 200) -> JSONResponse:
    """Return a response that nobody keeps."""
    return JSONResponse(body, status, {"cache-control": "no-store"})
