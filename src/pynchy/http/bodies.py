"""What the bodies of all requests share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """A body that says who sends it, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    by: Name = "somebody with the token"
