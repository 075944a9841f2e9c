"""What would load and be wrong is refused, with file, key and what to do."""

import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec

CASES = {
    "remote code": (
        {"auto_map": {"AutoModel": "modeling.X"}},
        r"auto_map.*its own Python code for AutoModel",
    ),
    "quantised": (
        {"quantization_config": {"quant_method": "gptq"}},
        "quantization_config: the weights are quantised",
    ),
    "vision key": ({"vision_config": {"hidden_size": 8}}, "vision_config: the model takes images"),
    "audio key": ({"audio_config": {"hidden_size": 8}}, "audio_config: the model takes images or sound"),
    "vision class": ({"architectures": ["CLIPModel"]}, "CLIPModel: the model takes images"),
    "vision language": ({"architectures": ["Qwen2VLForConditionalGeneration"]}, "takes images"),
    "encoder-decoder": (
        {"architectures": ["BartModel"], "model_type": "bart", "is_encoder_decoder": True},
        "is_encoder_decoder: BartModel is an encoder-decoder model",
    ),
    "question answering": ({"architectures": ["BertForQuestionAnswering"]}, "head that is not supported"),
    "multiple choice": ({"architectures": ["BertForMultipleChoice"]}, "head that is not supported"),
    "listwise reranker": (
        {"architectures": ["JinaForRanking"], "model_type": "qwen3"},
        "head that is not supported",
    ),
    "rotary bert": ({"position_embedding_type": "rotary"}, "position_embedding_type is 'rotary'"),
    "relative bert": ({"position_embedding_type": "relative_key"}, "knows absolute positions only"),
    "nomic experts": (
        {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "num_experts": 8},
        "num_experts is 8: transformers' nomic_bert has no experts",
    ),
    "unknown reward head": (
        {"architectures": ["LlamaForRewardModel"], "model_type": "llama"},
        "is not supported",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_would_be_wrong_is_refused(bert, case):
    changes, message = CASES[case]
    with pytest.raises(ModelError, match=message) as caught:
        read_spec(bert.config(**changes).path)
    assert caught.value.hint


def test_code_of_the_tokenizer_is_refused_too(bert):
    bert.edit("tokenizer_config.json", auto_map={"AutoTokenizer": ["tokenization.X", None]})
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: auto_map.*AutoTokenizer"):
        read_spec(bert.path)


def test_trusting_the_code_lets_it_through(bert):
    bert.config(auto_map={"AutoModel": "modeling.X"}, position_embedding_type="rotary")
    assert read_spec(bert.path, trust_remote_code=True).architecture == "BertModel"


@pytest.mark.parametrize(
    "changes",
    [
        {"auto_map": {"AutoConfig": "configuration.X"}},
        {"auto_map": {"AutoModel": "modeling.X"}, "model_type": "nomic_bert", "num_experts": 0},
        {"position_embedding_type": "absolute"},
        {"is_encoder_decoder": False},
        {"is_encoder_decoder": True, "architectures": ["T5EncoderModel"], "model_type": "t5"},
        {"is_encoder_decoder": True, "architectures": ["T5ForConditionalGeneration"], "model_type": "t5"},
        {"is_encoder_decoder": True, "architectures": ["UdopEncoderModel"], "model_type": "udop"},
    ],
)
def test_what_is_harmless_is_not_refused(library, changes):
    assert read_spec(library.config(**changes).path).kind == "embedding"


def test_reward_models_of_qwen_need_no_code_of_their_own(qwen):
    qwen.config(architectures=["Qwen2ForRewardModel"], auto_map={"AutoModel": "modeling_qwen2_rm.X"})
    qwen.weights(**{"score.2.weight": (1, 8)})
    assert read_spec(qwen.path).kind == "reward"
