"""The room as a whole: what it shows, what it imports, how large its files are."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from poolembed import poolers

ROOM = Path(poolers.__file__).parent

REFERENCE = """
    PoolingParams PoolingCursor PoolingMetadata PoolingStates Pooler SequencePooler TokenPooler CLSPool
    LastPool MeanPool AllPool StepPool EmbeddingPoolerHead ClassifierPoolerHead TokenEmbeddingPoolerHead
    TokenClassifierPoolerHead PoolerIdentity PoolerNormalize PoolerMultiLabelClassify PoolerClassify
    LambdaPoolerActivation DispatchPooler IdentityPooler BOSEOSFilter BgeM3Pooler LateChunkingParams
    PoolingParamsUpdate PoolerActivation SequencePoolerHead TokenPoolerHead PoolerOutput
    get_seq_pooling_method get_tok_pooling_method get_act_fn resolve_classifier_act_fn pooler_for_embed
    pooler_for_classify pooler_for_token_embed pooler_for_token_classify compute_maxsim_score
    compute_maxsim_score_batched
"""
OURS = """
    MaxPool MeanSqrtLenPool WeightedMeanPool ConcatPool PoolingMethod SequencePoolingMethod TokenPoolingMethod
    PoolingSpec SpladePooler check_pooling_method compute_maxsim_one_to_many
"""


def test_the_public_names_are_these():
    assert sorted(poolers.__all__) == sorted((REFERENCE + OURS).split())
    assert all(hasattr(poolers, name) for name in poolers.__all__)


@pytest.mark.parametrize("name", [name for name in poolers.__all__ if name != "PoolerOutput"])
def test_every_public_name_is_documented(name):
    assert len(inspect.getdoc(getattr(poolers, name))) > 10


def test_the_room_says_what_goes_in_and_out():
    for word in ("In:", "Out:", "Never:"):
        assert word in poolers.__doc__
        assert word in poolers.methods.__doc__


@pytest.mark.parametrize(
    "path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.relative_to(ROOM).as_posix()
)
def test_no_file_is_longer_than_200_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 200


BLOCKED = "transformers tokenizers safetensors huggingface_hub pyarrow click tqdm sentence_transformers"

CODE = f"""
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED.split()!r}:
            raise ImportError(f"blocked: {{name}}")

sys.meta_path.insert(0, Block())
try:
    import pyarrow
except ImportError as error:
    assert "blocked" in str(error)
else:
    raise SystemExit("the block does not hold")
import pkgutil, importlib
import poolembed.poolers as room
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    importlib.import_module(module.name)
room.check_pooling_method(room.get_seq_pooling_method("CLS+MEAN"))
print("whole")
"""


def test_the_room_works_with_torch_alone():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("whole", "")


def test_pooler_config_and_tasks_need_no_torch():
    code = "import sys, poolembed.config, poolembed.tasks; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
