"""The Transformer module's settings in sentence_bert_config.json that change what is computed.

Whatever is set there and not understood is an error; settings of speed and memory are ignored.
"""

from poolembed.errors import ModelError
from poolembed.runner.spec.document import Document

_CALL_SETTINGS = frozenset({"chat_template", "text"})
_TEXT_SETTINGS = frozenset({"max_length", "truncation", "padding"})
_HARMLESS_ARGUMENTS = frozenset(
    {
        "add_pooling_layer",
        "attn_implementation",
        "device_map",
        "dtype",
        "low_cpu_mem_usage",
        "torch_dtype",
        "trust_remote_code",
        "use_safetensors",
    }
)
_OUTPUTS = {"embedding": "last_hidden_state", "late-interaction": "last_hidden_state"}


def check_transformer(settings: Document, kind: str) -> None:
    """Check that the transformer is called as it is called here.

    Args:
        settings: sentence_bert_config.json.
        kind: what the checkpoint is.

    Raises:
        ModelError: it asks for arguments, inputs or outputs that are not supported.
    """
    calls = settings.section("processing_kwargs")
    _refuse_unknown(calls, _CALL_SETTINGS)
    _refuse_unknown(calls.section("text"), _TEXT_SETTINGS)
    for key in ("model_args", "model_kwargs"):
        _refuse_unknown(settings.section(key), _HARMLESS_ARGUMENTS)
    modalities = settings.section("modality_config")
    if modalities.data and "text" not in modalities.data:
        raise ModelError(
            f"{modalities.name}: the model takes no plain text, only {', '.join(modalities.data)}",
            "encode this model with sentence-transformers",
        )
    output = modalities.section("text").text("method_output_name")
    expected = _OUTPUTS.get(kind)
    if output and expected and output.value != expected:
        raise ModelError(
            f"{output.source} is {output.value!r}, expected {expected!r}",
            "encode this model with sentence-transformers",
        )


def _refuse_unknown(settings: Document, known: frozenset[str]) -> None:
    unknown = sorted(set(settings.data) - known)
    if unknown:
        raise ModelError(
            f"{settings.name}: {', '.join(unknown)} is not supported",
            "encode this model with sentence-transformers, or remove the key if it changes nothing",
        )
