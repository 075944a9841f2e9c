"""Search an output of `poolembed embed`: the rows whose vectors are nearest to that of a question.

    python examples/search.py examples/corpus.embed.parquet "a site is down: too many visitors at once"

The question goes through the model that the file names, as one row on standard input. All vectors are
read into memory; beyond a few million rows an index (DuckDB's vss, FAISS, ...) is the better place.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the rows of FILE that are nearest to QUESTION.")
    parser.add_argument("file", type=Path)
    parser.add_argument("question")
    parser.add_argument("--top", type=int, default=5, help="how many rows are printed")
    arguments = parser.parse_args()

    table = pq.read_table(arguments.file)
    model = table.schema.metadata[b"poolembed.model"].decode()
    # The default model's vectors have length 1, so the product is the cosine.
    scores = vectors(table) @ embed(arguments.question, model)
    for row in np.argsort(-scores)[: arguments.top].tolist():
        print(f"{scores[row]:.2f}  {table['text'][row].as_py()[:80]}")


def vectors(table: pa.Table) -> np.ndarray:
    column = table["embedding"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(column), -1)


def embed(text: str, model: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "question.parquet")
        command = [sys.executable, "-m", "poolembed", "embed", "-", "-o", output, "-m", model, "--quiet"]
        subprocess.run(command, input=json.dumps({"text": text}), text=True, check=True)
        return vectors(pq.read_table(output))[0]


if __name__ == "__main__":
    main()
