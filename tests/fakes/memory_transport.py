"""Port `JoinTransport` straight to a control plane in memory."""

from bcd.domain.model.joining import Answer
from bcd.ports.join_transport import JoinQuestion
from tests.fakes.controlplane.control_plane import MemoryControlPlane


class MemoryTransport:
    """`asked` are the questions that came; the `scripted` answers are given before the control plane's own."""

    def __init__(self, plane: MemoryControlPlane) -> None:
        self.plane = plane
        self.asked: list[JoinQuestion] = []
        self.scripted: list[Answer] = []

    def join(self, question: JoinQuestion) -> Answer:
        self.asked.append(question)
        return self.scripted.pop(0) if self.scripted else self.plane.ask(question)

    def close(self) -> None:
        """There is no connection."""
