"""read_spec: open a model folder and settle everything it declares."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from poolembed.config import PoolerConfig
from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import (
    Checkpoint,
    locate_transformer,
    read_config,
    require_tokenizer,
    require_weights,
)
from poolembed.runner.spec.document import UNDECLARED, USER, Declared, read_document
from poolembed.runner.spec.draft import Draft
from poolembed.runner.spec.families import DECODERS, ENCODERS
from poolembed.runner.spec.kinds import read_kind, read_tasks
from poolembed.runner.spec.lengths import read_max_length, read_max_positions
from poolembed.runner.spec.modules import read_transformer_config
from poolembed.runner.spec.outputs import read_output
from poolembed.runner.spec.overrides import check_meaning, split_settings, user_document
from poolembed.runner.spec.prompts import read_prompts
from poolembed.runner.spec.record import ModelSpec
from poolembed.runner.spec.refusals import refuse_config
from poolembed.runner.spec.tokenizer import read_tokenizer
from poolembed.runner.spec.transformer import check_transformer

_HIDDEN_SIZE_KEYS = ("hidden_size", "d_model", "dim", "n_embd", "emb_dim")
_CONFIG_ARGUMENTS = ("config_args", "config_kwargs")
_TOKENIZER_ARGUMENTS = ("tokenizer_args", "processor_kwargs")


def read_spec(
    folder: Path,
    *,
    model_name: str | None = None,
    pooler_config: PoolerConfig | None = None,
    max_length: int | None = None,
    overrides: Mapping[str, str] | None = None,
    trust_remote_code: bool = False,
) -> ModelSpec:
    """Return what a model folder declares, with the user's choices over it.

    Precedence: user, sentence-transformers' files, config.json, default of the architecture. Reads JSON and
    safetensors headers only; imports neither torch nor transformers.

    Args:
        folder: the model folder.
        model_name: hub name, by which known families are recognised; None takes the folder's name.
        pooler_config: the user's pooler options.
        max_length: most tokens of a row; None takes the model's own limit.
        overrides: `--set` values by key: a setting of ModelSpec or a key of config.json.
        trust_remote_code: accept checkpoints that need their own Python code.

    Raises:
        ModelError: the folder is incomplete, or declares what is not supported; names file and key.
        ConfigError: an option or override is unknown, mistyped or contradicts the model.
    """
    user_options = pooler_config or PoolerConfig()
    checkpoint, changed = _open(
        folder, model_name or folder.resolve().name, user_options, max_length, overrides or {}
    )
    refuse_config(checkpoint.config, checkpoint.tokenizer_config, trust_remote_code=trust_remote_code)
    draft = Draft()
    draft.values.update(
        folder=folder, subfolder=checkpoint.subfolder, name=checkpoint.name, config_overrides=changed
    )
    _read_identity(checkpoint, draft)
    _read_text_settings(checkpoint, draft)
    return _settle(checkpoint, draft, user_options)


def _open(
    folder: Path, name: str, pooler_config: PoolerConfig, max_length: int | None, overrides: Mapping[str, str]
) -> tuple[Checkpoint, dict[str, object]]:
    """Return the parsed folder and the keys of config.json that are not as on disk."""
    modules, subfolder = locate_transformer(folder)
    place = folder / subfolder
    transformer = modules[0].config if modules else read_transformer_config(folder, "")
    config = read_config(folder, subfolder)
    tokenizer_config = read_document(place, "tokenizer_config.json")
    changed: dict[str, object] = {}
    for key in _CONFIG_ARGUMENTS:
        arguments = transformer.section(key)
        config = config.updated(arguments.data, arguments.name)
        changed.update(arguments.data)
    for key in _TOKENIZER_ARGUMENTS:
        arguments = transformer.section(key)
        tokenizer_config = tokenizer_config.updated(arguments.data, arguments.name)
    settings, config_changes = split_settings(overrides, config)
    weights = require_weights(folder, subfolder)
    require_tokenizer(folder, subfolder)
    checkpoint = Checkpoint(
        folder=folder,
        name=name,
        subfolder=subfolder,
        modules=modules,
        config=config.updated(config_changes, USER),
        user=user_document(settings, pooler_config, max_length),
        library=read_document(folder, "config_sentence_transformers.json"),
        transformer=transformer,
        tokenizer=read_document(place, "tokenizer.json"),
        tokenizer_config=tokenizer_config,
        weights=weights,
    )
    return checkpoint, {**changed, **config_changes}


def _read_identity(checkpoint: Checkpoint, draft: Draft) -> None:
    config = checkpoint.config
    kind = read_kind(checkpoint)
    check_meaning(checkpoint.user, kind.value)
    check_transformer(checkpoint.transformer, kind.value)
    draft.put("kind", kind)
    draft.put("architecture", Declared(checkpoint.architecture, config.source("architectures")))
    draft.put("model_type", Declared(checkpoint.model_type, config.source("model_type")))
    draft.put("hidden_size", _hidden_size(checkpoint))
    dtype = config.text("dtype") or config.text("torch_dtype")
    draft.put("dtype", dtype or Declared(None, UNDECLARED))
    draft.put("is_causal", _is_causal(checkpoint))
    draft.put("weight_files", Declared(checkpoint.weights.files, "model folder"))
    if checkpoint.weights.shapes is None:
        draft.warnings.append(
            f"{checkpoint.weights.files[0]} is a pickle; loading it can run code, prefer safetensors"
        )


def _read_text_settings(checkpoint: Checkpoint, draft: Draft) -> None:
    tokenizer, side, token_types = read_tokenizer(
        checkpoint.tokenizer, checkpoint.tokenizer_config, checkpoint.model_type, checkpoint.user
    )
    draft.put("tokenizer", Declared(tokenizer, "tokenizer.json, tokenizer_config.json"))
    draft.sources["padding_side"] = side.source
    draft.put("token_types", token_types)
    positions = read_max_positions(checkpoint)
    draft.put("max_length", read_max_length(checkpoint, positions, draft.warnings))
    draft.put("max_positions", positions or Declared(None, UNDECLARED))
    lower = checkpoint.user.flag("do_lower_case") or checkpoint.transformer.flag("do_lower_case")
    draft.put("do_lower_case", lower or Declared(value=False, source=UNDECLARED))
    prompts = read_prompts(checkpoint, draft.values["kind"], draft.warnings)
    draft.put("prompts", prompts.texts)
    draft.put("default_prompt_name", prompts.default_name)


def _settle(checkpoint: Checkpoint, draft: Draft, pooler_config: PoolerConfig) -> ModelSpec:
    values = draft.values
    read_output(checkpoint, values["kind"], draft)
    tasks = read_tasks(
        checkpoint,
        values["kind"],
        has_logit_head=values["logit_head"] is not None,
        is_bge_m3=values["bge_m3"] is not None,
    )
    task = checkpoint.user.text("task")
    draft.put("tasks", Declared(tasks, task.source if task else draft.sources["kind"]))
    _require_label_count(checkpoint, draft)
    settled: dict[str, Any] = {
        "task": tasks[0],
        "pooling_type": None,
        "seq_pooling_type": None if values["pooling"] == "ALL" else values["pooling"],
        "tok_pooling_type": values["tok_pooling"],
        "use_activation": values["use_activation"],
        "step_tag_id": values["step_tag_id"] if values["tok_pooling"] == "STEP" else None,
    }
    if values["logit_head"]:
        settled["returned_token_ids"] = None
    return ModelSpec(
        **values,
        pooler_config=replace(pooler_config, **settled),
        warnings=tuple(draft.warnings),
        sources=draft.sources,
    )


def _require_label_count(checkpoint: Checkpoint, draft: Draft) -> None:
    """Tell the loader the number of outputs where transformers would count names and get another."""
    labels, names = draft.values["labels"], checkpoint.config.section("id2label").data
    changed = draft.values["config_overrides"]
    if draft.values["logit_head"] is None and labels and (len(names) != len(labels) or "id2label" in changed):
        changed["id2label"] = dict(enumerate(labels))


def _hidden_size(checkpoint: Checkpoint) -> Declared[int]:
    for key in _HIDDEN_SIZE_KEYS:
        size = checkpoint.config.integer(key)
        if size:
            return size
    raise ModelError(
        f"config.json: none of {', '.join(_HIDDEN_SIZE_KEYS)} is declared", "download config.json again"
    )


def _is_causal(checkpoint: Checkpoint) -> Declared[bool]:
    """Return whether attention looks back only; the checkpoint's own word before its family's habit."""
    config = checkpoint.config
    declared = config.flag("is_causal") or config.flag("causal")
    both = config.flag("use_bidirectional_attention")
    if declared:
        return declared
    if both:
        return Declared(not both.value, both.source)
    if "Bidirectional" in checkpoint.architecture:
        return Declared(value=False, source=config.source("architectures"))
    family = checkpoint.model_type
    if family in ENCODERS:
        return config.flag("is_decoder") or Declared(value=False, source=UNDECLARED)
    is_decoder = family in DECODERS or checkpoint.architecture.endswith(("ForCausalLM", "LMHeadModel"))
    return Declared(is_decoder, UNDECLARED)
