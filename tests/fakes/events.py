"""Port `Events` in memory: what was told, in order."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Told:
    level: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)


class RecordedEvents:
    def __init__(self) -> None:
        self.told: list[Told] = []

    def info(self, text: str, **fields: object) -> None:
        self._keep("info", text, fields)

    def warning(self, text: str, **fields: object) -> None:
        self._keep("warning", text, fields)

    def error(self, text: str, **fields: object) -> None:
        self._keep("error", text, fields)

    def texts(self, level: str) -> list[str]:
        return [told.text for told in self.told if told.level == level]

    def _keep(self, level: str, text: str, fields: dict[str, object]) -> None:
        self.told.append(Told(level, text, {name.rstrip("_"): str(value) for name, value in fields.items()}))
