"""How property tests run here: the same few examples every time, and no deadline that a busy machine would break."""

from hypothesis import settings

few = settings(max_examples=60, deadline=None, derandomize=True, database=None)
