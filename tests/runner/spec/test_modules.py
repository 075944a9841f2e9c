import importlib

import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec.modules import _REFUSED, COMPUTED, read_modules
from tests.runner.spec.folders import DENSE, NORMALIZE, POOLING, TRANSFORMER, Folder

ROOMS = ("sentence_transformer", "sparse_encoder", "cross_encoder", "multi_vector_encoder", "base")
NOT_IN_A_FOLDER = {"Module", "InputModule", "BaseTokenPooling"}


def test_no_modules_json_means_no_modules(tmp_path):
    assert read_modules(tmp_path) is None


def test_modules_come_in_order_with_folder_and_settings(tmp_path):
    folder = Folder(tmp_path).modules(TRANSFORMER, POOLING, NORMALIZE)
    folder.write("1_Pooling/config.json", {"pooling_mode": "cls"}).write(
        "sentence_roberta_config.json", {"a": 1}
    )
    transformer, pooling, normalize = read_modules(tmp_path)
    assert (transformer.kind, transformer.folder, transformer.config.name) == (
        "Transformer",
        "",
        "sentence_roberta_config.json",
    )
    assert (pooling.kind, pooling.folder, pooling.config.data) == (
        "Pooling",
        "1_Pooling",
        {"pooling_mode": "cls"},
    )
    assert (normalize.kind, normalize.config.data, normalize.is_pylate) == ("Normalize", {}, False)


@pytest.mark.parametrize(
    "type_id",
    [
        DENSE,
        "sentence_transformers.base.modules.dense.Dense",
        "sentence_transformers.sentence_transformer.modules.Dense",
        "pylate.models.Dense.Dense",
    ],
)
def test_type_ids_of_every_release_are_known(tmp_path, type_id):
    (module,) = read_modules(Folder(tmp_path).modules(type_id).path)
    assert (module.kind, module.is_pylate) == ("Dense", type_id.startswith("pylate"))


def test_every_module_of_the_installed_library_is_either_computed_or_refused():
    pytest.importorskip("sentence_transformers")
    names = set()
    for room in ROOMS:
        names |= set(importlib.import_module(f"sentence_transformers.{room}.modules").__all__)
    assert names - NOT_IN_A_FOLDER <= COMPUTED | set(_REFUSED)


@pytest.mark.parametrize("kind", sorted(_REFUSED))
def test_modules_that_cannot_be_computed_are_refused_by_name(tmp_path, kind):
    folder = Folder(tmp_path).modules(TRANSFORMER, f"sentence_transformers.models.{kind}")
    with pytest.raises(
        ModelError, match=rf"modules\.json\[1\]: type {kind} .*not supported.*sentence-transformers"
    ):
        read_modules(folder.path)


@pytest.mark.parametrize("type_id", ["custom_st.Transformer", "modeling.Pooling", "Pooling"])
def test_code_of_the_checkpoint_is_not_run(tmp_path, type_id):
    folder = Folder(tmp_path).modules(type_id)
    with pytest.raises(ModelError, match=r"Python code of the checkpoint"):
        read_modules(folder.path)


def test_an_unknown_module_is_an_error(tmp_path):
    folder = Folder(tmp_path).modules("sentence_transformers.models.Telepathy")
    with pytest.raises(ModelError, match=r"Telepathy' is unknown"):
        read_modules(folder.path)


@pytest.mark.parametrize("content", [{}, [], ["x"], "[1, 2]"])
def test_a_file_without_modules_is_an_error(tmp_path, content):
    with pytest.raises(ModelError, match=r"modules\.json holds no list of modules"):
        read_modules(Folder(tmp_path).write("modules.json", content).path)


def test_a_module_without_type_is_an_error(tmp_path):
    with pytest.raises(ModelError, match=r"names no type"):
        read_modules(Folder(tmp_path).write("modules.json", [{"path": ""}]).path)


@pytest.mark.parametrize("place", ["../elsewhere", "1_Pooling/../../x"])
def test_a_path_out_of_the_folder_is_refused(tmp_path, place):
    folder = Folder(tmp_path).write("modules.json", [{"type": TRANSFORMER, "path": place}])
    with pytest.raises(ModelError, match=r"leads out of the model folder"):
        read_modules(folder.path)


def test_a_missing_path_is_the_model_folder(tmp_path):
    (module,) = read_modules(Folder(tmp_path).write("modules.json", [{"type": TRANSFORMER}]).path)
    assert module.folder == ""
