"""Settings, the processor's description and the peers' environments."""

import os
import sys

import pytest

from benchmarks.contestants import CONTESTANTS, quantization
from benchmarks.machine import cpu
from benchmarks.peers import needed
from benchmarks.settings import Settings, SettingsError


def test_the_command_line_goes_before_the_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(f'rounds = 7\nscale = 0.5\n[peers]\nonnx = "{sys.executable}"\n')
    settings = Settings.of(file, {"rounds": 2, "peers": {"vllm": sys.executable}})
    assert (settings.rounds, settings.scale) == (2, 0.5)
    assert settings.peers == {"onnx": sys.executable, "vllm": sys.executable}


def test_an_unknown_key_is_refused(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("round = 7\n")
    with pytest.raises(SettingsError, match="unknown: round"):
        Settings.of(file, {})


@pytest.mark.parametrize(
    "given", [{"rounds": 0}, {"scale": -1.0}, {"cores": (4095,)}, {"peers": {"vllm": "none"}}]
)
def test_what_cannot_be_measured_is_refused(given):
    with pytest.raises(SettingsError):
        Settings.of(None, given)


def test_measured_processes_have_as_many_threads_as_cores_and_none_of_the_callers_options(monkeypatch):
    monkeypatch.setenv("POOLEMBED_DTYPE", "bfloat16")
    core = min(os.sched_getaffinity(0))
    environment = Settings.of(None, {"cores": (core,)}).environment
    assert environment["OMP_NUM_THREADS"] == "1"
    assert "POOLEMBED_DTYPE" not in environment


def test_a_peer_without_an_interpreter_is_left_out_with_the_reason():
    assert "--peer vllm=" in CONTESTANTS["vllm"].refusal(Settings.of(None, {}))


def test_a_processor_is_read_as_the_kernel_describes_it():
    first = "processor\t: 0\nmodel name\t: Some CPU: fast\nflags\t\t: fpu avx2\n"
    text = f"{first}\nprocessor\t: 1\nflags\t\t: none\n"
    assert cpu(text) == ("Some CPU: fast", {"fpu", "avx2"})


@pytest.mark.parametrize(
    ("flags", "name"), [({"avx2"}, "avx2"), ({"avx2", "avx512f"}, "avx512"), ({"avx512_vnni"}, "avx512_vnni")]
)
def test_int8_is_made_for_the_processor(flags, name):
    assert quantization(flags) == name


def test_requirements_of_vllm_are_kept_but_for_what_pooling_does_without():
    required = [
        "torch==2.11.0",
        'torchaudio ; platform_machine == "x86_64"',
        "triton>=3",
        "numpy>=1.26",
        'pydantic ; python_version >= "3.10"',
        'datasets ; extra == "bench"',
    ]
    assert needed(required) == ["numpy>=1.26", 'pydantic ; python_version >= "3.10"']
