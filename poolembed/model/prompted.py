"""Operations on one prompted text a row: what they are made of, and the one way to make them."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from poolembed.config import TaskConfig
from poolembed.model.operation import Operation
from poolembed.runner import ModelSpec, PoolingParams

if TYPE_CHECKING:
    from poolembed.runner import PoolingRunner

C = TypeVar("C", bound=TaskConfig)


@dataclass(frozen=True, slots=True)
class Prompted(Operation, Generic[C]):
    """An operation on the role `text`, by the same parameters for every row.

    Attributes:
        runner: the model.
        params: what is computed.
        prompt: text put before every text.
        config: what the user wants to see.
    """

    runner: "PoolingRunner"
    params: PoolingParams
    prompt: str
    config: C

    @classmethod
    def of(cls, runner: "PoolingRunner", prompt: str, config: C, given: PoolingParams | None = None) -> Self:
        """Return the operation, checked against what the model declares.

        Args:
            runner: the model.
            prompt: text put before every text.
            config: what the user wants to see.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model cannot do it, see `check`.
        """
        params = runner.ready(cls.check(runner.spec, config, given))
        return cls(runner, params, prompt, config, **cls.extras(runner, params, config))

    @staticmethod
    @abstractmethod
    def check(spec: ModelSpec, config: C, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for; needs neither weights nor torch.

        Args:
            spec: what the model declares.
            config: what the user wants to see.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model cannot do it as asked.
        """

    @staticmethod
    def extras(runner: "PoolingRunner", params: PoolingParams, config: C) -> dict[str, Any]:
        """Return the attributes that a subclass has beside those of this class.

        Args:
            runner: the model.
            params: what is computed.
            config: what the user wants to see.
        """
        del runner, params, config
        return {}
