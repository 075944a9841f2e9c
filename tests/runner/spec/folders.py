"""Model folders for the tests: written from scratch, headers of weights only, no tensor anywhere."""

import json
import os
import shutil
from pathlib import Path

SHARED = Path(os.environ.get("POOLEMBED_SHARED", Path(__file__).parents[4] / "shared"))
ZOO = SHARED / "zoo"
FAMILIES = sorted(path.stem for path in (ZOO / "expected").glob("*.json"))

BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 8,
    "max_position_embeddings": 64,
    "vocab_size": 12,
    "type_vocab_size": 2,
    "torch_dtype": "float32",
}
QWEN = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 8,
    "max_position_embeddings": 128,
    "vocab_size": 12,
    "tie_word_embeddings": True,
}
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "yes", "no", "Yes", "0", "1", "a", "b"]
TRANSFORMER = "sentence_transformers.models.Transformer"
POOLING = "sentence_transformers.models.Pooling"
DENSE = "sentence_transformers.models.Dense"
NORMALIZE = "sentence_transformers.models.Normalize"


def template_processing(*, second_type=1):
    def piece(kind, name, type_id):
        return {kind: {"id": name, "type_id": type_id}}

    single = [piece("SpecialToken", "[CLS]", 0), piece("Sequence", "A", 0), piece("SpecialToken", "[SEP]", 0)]
    pair = [*single, piece("Sequence", "B", second_type), piece("SpecialToken", "[SEP]", second_type)]
    return {"type": "TemplateProcessing", "single": single, "pair": pair}


class Folder:
    """A model folder that a test builds up and breaks."""

    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def write(self, name, content):
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return self

    def edit(self, name, *removed, **changes):
        content = (
            json.loads((self.path / name).read_text(encoding="utf-8")) if (self.path / name).exists() else {}
        )
        return self.write(name, {**{key: v for key, v in content.items() if key not in removed}, **changes})

    def config(self, *removed, **changes):
        return self.edit("config.json", *removed, **changes)

    def remove(self, name):
        (self.path / name).unlink()
        return self

    def weights(self, name="model.safetensors", **shapes):
        entries = {
            key: {"dtype": "F32", "shape": list(shape), "data_offsets": [0, 0]}
            for key, shape in shapes.items()
        }
        header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(len(header).to_bytes(8, "little") + header)
        return self

    def modules(self, *entries):
        """Write modules.json from type ids; the folder of each is `N_Name`, of the first the root."""
        listed = []
        for index, type_id in enumerate(entries):
            name = f"{index}_{type_id.rpartition('.')[2]}" if index else ""
            listed.append({"idx": index, "name": str(index), "path": name, "type": type_id})
        return self.write("modules.json", listed)

    def dense(self, name, rows, columns, *, bias=True, **config):
        self.write(
            f"{name}/config.json", {"in_features": columns, "out_features": rows, "bias": bias, **config}
        )
        shapes = {"linear.weight": (rows, columns)} | ({"linear.bias": (rows,)} if bias else {})
        return self.weights(f"{name}/model.safetensors", **shapes)


def base_folder(path, config=BERT, *, tokens=TOKENS, **shapes):
    """Return the smallest folder that is accepted."""
    folder = Folder(path)
    folder.write("config.json", config)
    added = [{"id": index, "content": token, "special": True} for index, token in enumerate(tokens[:5])]
    folder.write(
        "tokenizer.json",
        {
            "model": {"type": "WordPiece", "vocab": {token: index for index, token in enumerate(tokens)}},
            "added_tokens": added,
            "post_processor": template_processing(),
        },
    )
    folder.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 64})
    return folder.weights(**({"embeddings.word_embeddings.weight": (12, 8)} | shapes))


def library_folder(path, *, pooling=None, normalize=True):
    """Return a folder of sentence-transformers: Transformer, Pooling, Normalize."""
    folder = base_folder(path)
    folder.modules(TRANSFORMER, POOLING, *([NORMALIZE] if normalize else []))
    return folder.write("1_Pooling/config.json", pooling or {"pooling_mode_mean_tokens": True})


def zoo_copy(family, path):
    """Return a copy of a zoo model, to be broken."""
    shutil.copytree(ZOO / "models" / family, path)
    return Folder(path)
