"""Transformers of two small layers with random weights, made on the spot, and folders to save them in."""

import json
import shutil

import torch
import transformers

SIZE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
DECODER = {**SIZE, "num_key_value_heads": 1, "head_dim": 16, "bos_token_id": 1, "eos_token_id": 2}

CONFIGS = {
    "Albert": {**SIZE, "embedding_size": 16},
    "Bert": SIZE,
    "DebertaV2": {**SIZE, "pooler_hidden_size": 32},
    "DistilBert": {
        "vocab_size": 64,
        "dim": 32,
        "hidden_dim": 48,
        "n_layers": 2,
        "n_heads": 2,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    },
    "Electra": {**SIZE, "embedding_size": 16},
    "GPT2": {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "pad_token_id": 0},
    "Gemma": DECODER,
    "Llama": DECODER,
    "MPNet": {**SIZE, "pad_token_id": 1},
    "Mistral": DECODER,
    "ModernBert": {**SIZE, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    "Phi": {**SIZE, "bos_token_id": 1, "eos_token_id": 2},
    "Qwen2": {**SIZE, "num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2},
    "Qwen3": DECODER,
    "Roberta": {**SIZE, "pad_token_id": 1, "max_position_embeddings": 66},
    "XLMRoberta": {**SIZE, "pad_token_id": 1, "max_position_embeddings": 66},
}


def tiny(family, kind="Model", **changes):
    """Return a model such as `BertForSequenceClassification`; no bias and no norm of it is left at rest."""
    config = getattr(transformers, f"{family}Config")(**{**CONFIGS.get(family, {}), **changes})
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}{kind}")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def save(model, folder, tokenizer_from):
    """Save a model with the tokenizer files of a zoo model; returns the folder."""
    model.save_pretrained(folder)
    for file in tokenizer_from.iterdir():
        if file.name.startswith(("tokenizer", "special_tokens", "vocab")):
            shutil.copy(file, folder / file.name)
    return folder


def edit_json(file, *removed, **changes):
    """Change a JSON file in place."""
    content = json.loads(file.read_text("utf-8")) if file.exists() else {}
    content = {key: value for key, value in content.items() if key not in removed}
    file.write_text(json.dumps({**content, **changes}), "utf-8")
