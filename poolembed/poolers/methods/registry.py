"""Pooling methods by name: those of this package, and those that other packages bring.

Another package names its class in the entry point group `poolembed.pooling_methods`; the name of the
entry point is the name of the method. It cannot take the name of a built-in one.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from poolembed.errors import PoolingError, UnknownPoolingError
from poolembed.poolers.methods.base import PoolingMethod, SequencePoolingMethod, TokenPoolingMethod
from poolembed.poolers.methods.concat import ConcatPool
from poolembed.poolers.methods.maximum import MaxPool
from poolembed.poolers.methods.mean import MeanPool, MeanSqrtLenPool, WeightedMeanPool
from poolembed.poolers.methods.pick import CLSPool, LastPool
from poolembed.poolers.methods.tokens import AllPool, StepPool

ENTRY_POINT_GROUP = "poolembed.pooling_methods"

Method = TypeVar("Method", bound=PoolingMethod)


class PoolingMethodRegistry(Generic[Method]):
    """Pooling methods of one kind by name.

    Args:
        kind: base class of the methods.
        builtin: the methods of this package by name.
        installed: gives the entry points of other packages; looked at only for other names.
    """

    def __init__(
        self,
        kind: type[Method],
        builtin: Mapping[str, Callable[[], Method]],
        installed: Callable[[], Iterable[EntryPoint]] = lambda: entry_points(group=ENTRY_POINT_GROUP),
    ) -> None:
        self.kind = kind
        self.builtin = dict(builtin)
        self.installed = installed

    def create(self, name: str) -> Method:
        """Return a new method.

        Args:
            name: a built-in name, or that of an installed entry point.

        Raises:
            UnknownPoolingError: no method has that name (also a NotImplementedError).
            PoolingError: several packages bring the name, or what they bring is no such method.
        """
        if name in self.builtin:
            return self.builtin[name]()
        found = [point for point in self.installed() if point.name == name]
        if not found:
            near = "".join(f", did you mean {n!r}?" for n in get_close_matches(name, self.builtin, n=1))
            raise UnknownPoolingError(
                f"no {self.kind.__name__} is called {name!r}{near}", f"known: {', '.join(self.builtin)}"
            )
        if len(found) > 1:
            raise PoolingError(
                f"pooling method {name!r} is brought by {', '.join(point.value for point in found)}",
                "uninstall all but one",
            )
        return self._load(found[0])

    def _load(self, point: EntryPoint) -> Method:
        try:
            loaded = point.load()
        except (ImportError, AttributeError) as error:
            raise PoolingError(
                f"pooling method {point.name!r} ({point.value}) does not load: {error}"
            ) from error
        if not (isinstance(loaded, type) and issubclass(loaded, self.kind)):
            raise PoolingError(
                f"pooling method {point.name!r} ({point.value}) is no {self.kind.__name__}",
                "name it as the other kind, or derive its class from this one",
            )
        return loaded()


SEQUENCE_METHODS = PoolingMethodRegistry(
    SequencePoolingMethod,  # type: ignore[type-abstract]
    {
        "CLS": CLSPool,
        "LAST": LastPool,
        "MEAN": MeanPool,
        "MAX": MaxPool,
        "MEAN_SQRT_LEN": MeanSqrtLenPool,
        "WEIGHTED_MEAN": WeightedMeanPool,
    },
)
TOKEN_METHODS = PoolingMethodRegistry(
    TokenPoolingMethod,  # type: ignore[type-abstract]
    {
        "ALL": AllPool,
        "STEP": StepPool,
    },
)


def get_seq_pooling_method(pooling_type: str) -> SequencePoolingMethod:
    """Return a sequence pooling method.

    Args:
        pooling_type: a name, or several joined by `+` whose vectors are concatenated in that order.

    Raises:
        UnknownPoolingError: a name is unknown (also a NotImplementedError).
    """
    methods = [SEQUENCE_METHODS.create(name) for name in pooling_type.split("+")]
    return methods[0] if len(methods) == 1 else ConcatPool(methods)


def get_tok_pooling_method(pooling_type: str) -> TokenPoolingMethod:
    """Return a token pooling method.

    Args:
        pooling_type: a name.

    Raises:
        UnknownPoolingError: the name is unknown (also a NotImplementedError).
    """
    return TOKEN_METHODS.create(pooling_type)
