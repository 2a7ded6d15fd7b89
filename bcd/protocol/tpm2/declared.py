"""What every declared structure is.

To its users it is what @dataclass(frozen=True) makes of a class. That makes and compiles the methods of each one by
itself, which for all of them took as long as a tenth of a command, on hosts without a TPM too; here they stand once.
"""

from dataclasses import Field, FrozenInstanceError, dataclass
from typing import Any, ClassVar, NoReturn, dataclass_transform


@dataclass_transform(frozen_default=True)
class Structure:
    """A frozen dataclass whose fields say how they stand on the wire."""

    # All that it was decoded from (`wire.bytes_of`); no field.
    __slots__ = ("bytes_read",)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __match_args__: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        # Without a text of its own each would get its signature, for which that has to be found out.
        cls.__doc__ = cls.__doc__ or cls.__name__
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *values: Any, **named: Any) -> None:
        names, fields = self.__match_args__, vars(self)
        fields.update(zip(names, values, strict=False), **named)
        if fields.keys() != self.__dataclass_fields__.keys() or len(values) + len(named) != len(names):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(names)}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return vars(self) == vars(other)

    def __hash__(self) -> int:
        fields = vars(self)
        return hash(tuple([fields[name] for name in self.__match_args__]))

    def __repr__(self) -> str:
        fields = vars(self)
        return f"{type(self).__name__}({', '.join(f'{name}={fields[name]!r}' for name in self.__match_args__)})"

    def __setattr__(self, name: str, _value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")
