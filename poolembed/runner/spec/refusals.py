"""Checkpoints that would load and be wrong: code of their own, images, decoders, quantised weights."""

from poolembed.errors import ModelError
from poolembed.runner.spec.document import Document
from poolembed.runner.spec.families import (
    ABSOLUTE_ONLY,
    NATIVE_ARCHITECTURES,
    NATIVE_DESPITE_REMOTE_CODE,
    T5_ENCODERS,
)

_OTHER_MODALITIES = ("vision_config", "audio_config", "image_token_id", "image_token_index", "vision_tower")
_OTHER_MODALITY_WORDS = (
    "CLIP",
    "Siglip",
    "Vision",
    "Audio",
    "Speech",
    "Image",
    "Video",
    "VL",
    "ColPali",
    "Llava",
)
_UNSUPPORTED_HEADS = (
    "QuestionAnswering",
    "MultipleChoice",
    "NextSentencePrediction",
    "JinaForRanking",
    "ForRetrieval",
)


def refuse_config(config: Document, tokenizer_config: Document, *, trust_remote_code: bool) -> None:
    """Check that the model described by config.json can be run as it is meant.

    Args:
        config: config.json.
        tokenizer_config: tokenizer_config.json.
        trust_remote_code: whether code of the folder may run.

    Raises:
        ModelError: it needs its own code, other inputs than text, a decoder, or is quantised.
    """
    names = config.strings("architectures")
    architecture = names.value[0] if names and names.value else ""
    model_type = config.text("model_type")
    family = model_type.value if model_type else ""
    if not trust_remote_code:
        _refuse_remote_code(config, tokenizer_config, architecture, family)
        _refuse_other_positions(config, family)
    _refuse_other_inputs(config, architecture)
    _refuse_decoders(config, architecture, family)
    if config.declared("quantization_config"):
        raise ModelError(
            "config.json: quantization_config: the weights are quantised, which is not supported",
            "use the unquantised checkpoint that this one was made from",
        )
    if any(word in architecture for word in _UNSUPPORTED_HEADS):
        raise ModelError(
            f"config.json: architectures: {architecture} has a head that is not supported",
            "supported are embedding, masked-LM, classification, reward and reranker heads",
        )


def _refuse_remote_code(config: Document, tokenizer_config: Document, architecture: str, family: str) -> None:
    for document in (config, tokenizer_config):
        entries = {key for key in document.section("auto_map").data if key != "AutoConfig"}
        is_native = document is config and (
            family in NATIVE_DESPITE_REMOTE_CODE or architecture in NATIVE_ARCHITECTURES
        )
        if entries and not is_native:
            raise ModelError(
                f"{document.name}: auto_map: the checkpoint needs its own Python code for "
                f"{', '.join(sorted(entries))}",
                "read that code, then allow it with --trust-remote-code",
            )


def _refuse_other_positions(config: Document, family: str) -> None:
    kind = config.text("position_embedding_type")
    if kind and kind.value != "absolute" and family in ABSOLUTE_ONLY:
        raise ModelError(
            f"{kind.source} is {kind.value!r}, but transformers' {family} knows absolute positions only",
            "use a checkpoint whose model_type names its own architecture",
        )
    for key in ("num_experts", "moe_every_n_layers"):
        experts = config.integer(key)
        if family in NATIVE_DESPITE_REMOTE_CODE and experts and experts.value > 0:
            raise ModelError(
                f"{experts.source} is {experts.value}: transformers' {family} has no experts",
                "read the checkpoint's code, then allow it with --trust-remote-code",
            )


def _refuse_other_inputs(config: Document, architecture: str) -> None:
    keys = [key for key in _OTHER_MODALITIES if config.declared(key)]
    if keys or any(word in architecture for word in _OTHER_MODALITY_WORDS):
        what = keys[0] if keys else f"architectures: {architecture}"
        raise ModelError(
            f"config.json: {what}: the model takes images or sound, which is not supported",
            "use a model for text, or a checkpoint of its text part alone",
        )


def _refuse_decoders(config: Document, architecture: str, family: str) -> None:
    paired = config.flag("is_encoder_decoder")
    if paired is None or not paired.value or architecture.endswith("EncoderModel") or family in T5_ENCODERS:
        return
    raise ModelError(
        f"{paired.source}: {architecture or family} is an encoder-decoder model, which is not supported",
        "use a checkpoint of its encoder alone (such as T5EncoderModel)",
    )
