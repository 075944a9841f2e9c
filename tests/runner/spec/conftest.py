import pytest

from tests.runner.spec.folders import QWEN, ZOO, base_folder, library_folder, zoo_copy


@pytest.fixture
def bert(tmp_path):
    return base_folder(tmp_path / "some-bert")


@pytest.fixture
def qwen(tmp_path):
    folder = base_folder(tmp_path / "some-qwen", QWEN)
    return folder.edit("tokenizer_config.json", tokenizer_class="Qwen2Tokenizer")


@pytest.fixture
def library(tmp_path):
    return library_folder(tmp_path / "some-library-model")


@pytest.fixture
def zoo(tmp_path):
    if not (ZOO / "models").is_dir():
        pytest.skip("the shared zoo of checkpoints is not there (POOLEMBED_SHARED)")
    return lambda family: zoo_copy(family, tmp_path / family)
