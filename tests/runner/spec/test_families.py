import importlib
import inspect
import sys

import pytest

from poolembed.runner.spec import families

AUTO = "transformers.models.auto.modeling_auto"


def test_no_family_is_both_an_encoder_and_a_decoder():
    assert not families.ENCODERS & families.DECODERS


def test_an_encoder_counts_its_positions_in_one_way():
    groups = (
        families.TABLE_ENCODERS,
        families.OFFSET_ENCODERS,
        families.ROTARY_ENCODERS,
        families.RELATIVE_ENCODERS,
        families.T5_ENCODERS,
    )
    assert sum(len(group) for group in groups) == len(families.ENCODERS)


@pytest.mark.slow
def test_families_are_those_of_transformers():
    known = set(pytest.importorskip(AUTO).MODEL_MAPPING_NAMES)
    missing = (families.ENCODERS | families.DECODERS) - known
    # Families that only checkpoints with code of their own, or other releases, have.
    assert missing <= {"internlm2"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(families.LEFT_PADDING_TOKENIZERS))
def test_tokenizers_that_pad_on_the_left_do_so_in_transformers(name):
    transformers = pytest.importorskip("transformers")
    assert getattr(transformers, name).padding_side == "left"


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(families.OFFSET_ENCODERS - {"mpnet"}))
def test_offset_families_start_behind_the_padding_token_in_transformers(family):
    transformers = pytest.importorskip("transformers")
    model = getattr(transformers, importlib.import_module(AUTO).MODEL_MAPPING_NAMES[family])
    assert "create_position_ids_from_input_ids" in inspect.getsource(sys.modules[model.__module__])
