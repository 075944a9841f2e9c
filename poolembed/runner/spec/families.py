"""What is known of model families and stands in no file: attention, positions, prompts.

Tables of public facts about released models; nothing here reads a folder.
"""

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TABLE_ENCODERS = _names(
    "albert bert big_bird bros canine convbert distilbert electra ernie fnet flaubert layoutlm "
    "megatron-bert mobilebert mra nystromformer rembert roc_bert roformer splinter squeezebert xlm "
    "yoso"
)
"""Bidirectional models with one table of absolute positions, counted from 0."""

OFFSET_ENCODERS = _names(
    "camembert data2vec-text esm ibert lilt longformer luke mpnet roberta roberta-prelayernorm "
    "xlm-roberta xlm-roberta-xl xmod"
)
"""Bidirectional models whose first position is `pad_token_id + 1`, so that many rows are unusable."""

ROTARY_ENCODERS = _names("esmc eurobert gte jina_embeddings_v3 modernbert neomme nomic_bert")
"""Bidirectional models with rotary positions."""

RELATIVE_ENCODERS = frozenset({"deberta", "deberta-v2", "funnel", "xlnet"})
"""Bidirectional models with relative positions: no table limits the length."""

T5_ENCODERS = _names("longt5 mt5 switch_transformers t5 umt5")
"""Encoder-decoder models whose encoder stands alone, with relative positions."""

ENCODERS = TABLE_ENCODERS | OFFSET_ENCODERS | ROTARY_ENCODERS | RELATIVE_ENCODERS | T5_ENCODERS

DECODERS = _names(
    "apertus arcee biogpt bitnet bloom codegen cohere cohere2 deepseek_v2 deepseek_v3 diffllama doge "
    "dots1 ernie4_5 exaone4 falcon falcon_h1 gemma gemma2 gemma3_text gemma3n_text gemma4_text glm "
    "glm4 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granitemoe helium hunyuan_v1_dense "
    "internlm2 internlm3 jamba lfm2 llama mamba mamba2 minicpm3 ministral ministral3 mistral mistral4 "
    "mixtral modernbert-decoder mpt nemotron olmo olmo2 olmo3 olmoe openai-gpt opt persimmon phi phi3 "
    "phimoe qwen2 qwen2_moe qwen3 qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 stablelm "
    "starcoder2 xglm zamba zamba2"
)
"""Causal models, unless their configuration says otherwise."""

ABSOLUTE_ONLY = TABLE_ENCODERS | (OFFSET_ENCODERS - {"esm"})
"""Families whose class in transformers knows absolute positions only."""

NATIVE_DESPITE_REMOTE_CODE = frozenset({"nomic_bert"})
"""Families released with their own code that transformers has since taken in, under the same key names."""

NATIVE_ARCHITECTURES = frozenset({"Qwen2ForRewardModel", "Qwen2ForProcessRewardModel"})
"""Classes released with their own code that are built here from parts of transformers."""

LEFT_PADDING_TOKENIZERS = frozenset(
    {
        "CodeLlamaTokenizer",
        "CohereTokenizer",
        "GemmaTokenizer",
        "LlamaTokenizer",
        "XLNetTokenizer",
    }
)
"""Tokenizer classes of transformers that pad on the left when no file says which side."""

LLAMA_TOKENIZER_FAMILIES = frozenset({"idefics", "idefics2", "llama", "code_llama"})
"""Families for which transformers keeps a declared LlamaTokenizer; others get a plain tokenizer."""

BGE_QUERY = "Represent this sentence for searching relevant passages: "

_PROMPTS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        r"e5-mistral|e5-.*-instruct",
        {
            "query": "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
            "Query: "
        },
    ),
    (r"(^|[/_-])e5[_-]", {"query": "query: ", "document": "passage: "}),
    (
        r"nomic-embed-text",
        {
            "query": "search_query: ",
            "document": "search_document: ",
            "classification": "classification: ",
            "clustering": "clustering: ",
        },
    ),
    (r"bge-(small|base|large)-en-v1\.5", {"query": BGE_QUERY}),
    (r"bge-(small|base|large)-en", {"query": BGE_QUERY}),
    (r"bge-(small|base|large)-zh", {"query": "为这个句子生成表示以用于检索相关文章："}),
    (r"mxbai-embed", {"query": BGE_QUERY}),
    (r"arctic-embed-.*-v2", {"query": "query: "}),
    (r"arctic-embed", {"query": BGE_QUERY}),
)


def known_prompts(name: str) -> dict[str, str]:
    """Return the prompts that the authors of a family ask for, by the model's name.

    Args:
        name: hub name or folder name, such as `intfloat/e5-base-v2`.

    Returns:
        Prompt text by role; empty when the family is unknown or needs none. Source: the model cards.
    """
    lowered = name.lower()
    return next((dict(prompts) for pattern, prompts in _PROMPTS if re.search(pattern, lowered)), {})
