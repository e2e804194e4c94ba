"""Text out of JSON may hold halves of characters, for which no encoding has a place."""


def whole(text: str) -> str:
    """Join split surrogates and replace lone ones, so that the text can be written as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
