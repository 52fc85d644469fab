"""Classes of values, declared as with ``dataclasses`` but created in a fifth of the time (pure).

``dataclasses`` generates and compiles eight methods for each class.  With forty classes that was a third of
the time of ``holdfast run -- true``.  Here the methods are the same functions for all classes, and only
``__init__`` is generated.  All classes have slots.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C")


@dataclass_transform(frozen_default=True)
def value(cls: type[C]) -> type[C]:
    """Make a class of immutable values: equal if their fields are equal, and hashable."""
    made: type[C] = _made(cls, "_{0}(self, {0})", __setattr__=_refuse, __delattr__=_refuse, __hash__=_hash)
    return made


@dataclass_transform()
def record(cls: type[C]) -> type[C]:
    """Make a class of mutable records: equal if their fields are equal, and not hashable."""
    made: type[C] = _made(cls, "self.{0} = {0}", __hash__=None)
    return made


def replace(value: C, **changes: Any) -> C:
    """Return a copy of a value or record with other values for some fields."""
    kind: Any = type(value)
    return kind(**{name: getattr(value, name) for name in kind.__match_args__} | changes)  # type: ignore[no-any-return]


def _made(cls: Any, fill: str, **more: Any) -> Any:
    """Return the class with slots and methods; ``fill`` is the statement of ``__init__`` for a field."""
    fields = tuple(cls.__annotations__)
    members = {name: member for name, member in cls.__dict__.items() if name not in _OWN}
    defaults = {name: members.pop(name) for name in fields if name in members}
    members |= {
        "__slots__": fields,
        "__match_args__": fields,
        "__eq__": _equals,
        "__repr__": _show,
        "__reduce__": _reduce,
        "__dataclass_fields__": _Fields(cls, fields, defaults),
        "_facts": staticmethod(_getter(fields)),
        **more,
    }
    made = type(cls)(cls.__name__, cls.__bases__, members)
    made.__init__ = _init(made, fields, defaults, fill)
    return made


_OWN = ("__dict__", "__weakref__")


def _getter(fields: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(fields) > 1:
        return attrgetter(*fields)
    return lambda value: tuple(getattr(value, name) for name in fields)


def _init(made: Any, fields: tuple[str, ...], defaults: dict[str, Any], fill: str) -> Callable[..., None]:
    """Generate ``__init__``: the one method for which a generic function would be too slow."""
    # A value refuses ``__setattr__``, so its fields are set through the descriptors of the slots.
    scope: dict[str, Any] = {f"_{name}": made.__dict__[name].__set__ for name in fields}
    scope |= {f"default_{name}": default for name, default in defaults.items()}
    parameters = [f"{name}=default_{name}" if name in defaults else name for name in fields]
    body = "; ".join(map(fill.format, fields)) or "pass"
    exec(f"def __init__(self, {', '.join(parameters)}): {body}", scope)  # noqa: S102  (names of fields)
    made_init: Callable[..., None] = scope["__init__"]
    made_init.__qualname__ = f"{made.__qualname__}.__init__"
    return made_init


class _Fields:
    """``__dataclass_fields__``, for ``dataclasses.replace``, ``fields`` and ``asdict``; made on demand."""

    def __init__(self, cls: Any, fields: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self._cls = cls
        self._fields = fields
        self._defaults = defaults

    def __get__(self, value: object, kind: type) -> Any:
        import dataclasses

        types, defaults = self._cls.__annotations__, self._defaults
        twin: Any = dataclasses.make_dataclass(
            kind.__name__,
            [
                (name, types[name], dataclasses.field(default=defaults.get(name, dataclasses.MISSING)))
                for name in self._fields
            ],
        )
        return twin.__dataclass_fields__


# Methods that all classes share.


def _equals(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return self._facts(self) == self._facts(other)


def _hash(self: Any) -> int:
    return hash(self._facts(self))


def _show(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({shown})"


def _reduce(self: Any) -> tuple[Any, tuple[Any, ...]]:
    return type(self), self._facts(self)


def _refuse(self: Any, name: str, *value: object) -> None:
    raise AttributeError(f"{type(self).__qualname__} cannot be changed: {name}")
