"""What a misspelt word was to be."""

from collections.abc import Sequence


def did_you_mean(typed: str, known: Sequence[str], before: str = "") -> str:
    """The one of `known` that is meant, in brackets, after `before`; or nothing. What was typed is not said again."""
    # Only where something is wrong: it is slow to import.
    import difflib

    close = difflib.get_close_matches(typed, known, n=1)
    return f" (did you mean {before}{close[0]}?)" if close else ""
