"""From the name of a model to a runner that is ready and checked."""

import torch

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.assemble import assemble
from poolembed.runner.backbone import Backbone
from poolembed.runner.checkpoint import load_checkpoint, load_tokenizer
from poolembed.runner.device import resolve_device, resolve_dtype
from poolembed.runner.locate import locate_model
from poolembed.runner.pooling_runner import CPU_BATCH_TOKENS, GPU_BATCH_TOKENS, PoolingRunner
from poolembed.runner.self_check import self_check
from poolembed.runner.spec import ModelSpec, read_spec
from poolembed.runner.tokenizer import RowTokenizer


def load_runner(
    model: ModelConfig, pooler: PoolerConfig | None = None, batch_tokens: int | None = None
) -> PoolingRunner:
    """Find a model, read what it declares, load it and check how it can be run.

    Args:
        model: which model, where and in which precision.
        pooler: the user's changes to what the model declares.
        batch_tokens: most tokens of a batch; None chooses by device.

    Raises:
        ConfigError: the device, precision, prompt or pooling asked for cannot be had.
        ModelError: the model is not found, incomplete or not supported.
    """
    folder = locate_model(model.model, model.revision)
    spec = read_spec(
        folder.path,
        model_name=folder.name,
        pooler_config=pooler,
        max_length=model.max_length,
        trust_remote_code=model.trust_remote_code,
    )
    prompt = choose_prompt(spec, model)
    device = resolve_device(model.device)
    dtype = resolve_dtype(model.dtype, device=device, stored=_stored(spec), model_type=spec.model_type)
    loaded = load_checkpoint(spec, device=device, dtype=dtype, trust_remote_code=model.trust_remote_code)
    tokenizer = load_tokenizer(spec, trust_remote_code=model.trust_remote_code)
    transformer, pooling = assemble(spec, loaded, device)
    backbone = Backbone(transformer, device)
    check = self_check(backbone, max_length=spec.max_length, special_ids=frozenset(tokenizer.all_special_ids))
    default = CPU_BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS
    return PoolingRunner(
        spec=spec,
        folder=folder,
        tokenizer=RowTokenizer(
            tokenizer, max_length=spec.max_length, prompt=prompt, pools_prompt=spec.include_prompt
        ),
        backbone=backbone,
        pooler=pooling,
        check=check,
        batch_tokens=default if batch_tokens is None else batch_tokens,
    )


def choose_prompt(spec: ModelSpec, model: ModelConfig) -> str:
    """Return the text put before every row: the user's, else the model's default, else nothing.

    Raises:
        ConfigError: the model declares no prompt of that name.
    """
    if model.prompt is not None:
        return model.prompt
    if model.prompt_name is None:
        return spec.default_prompt
    if model.prompt_name not in spec.prompts:
        known = ", ".join(spec.prompts) or "none"
        raise ConfigError(
            f"{spec.name} declares no prompt {model.prompt_name!r}",
            f"its prompts: {known}; or use --prompt TEXT",
        )
    return spec.prompts[model.prompt_name]


def _stored(spec: ModelSpec) -> torch.dtype:
    """Return the precision of the weights on disk; undeclared means float32."""
    dtype = getattr(torch, spec.dtype or "float32", torch.float32)
    return dtype if isinstance(dtype, torch.dtype) else torch.float32
