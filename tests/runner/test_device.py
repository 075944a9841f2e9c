"""Which device and which precision, from what is asked and what there is."""

import pytest
import torch

from poolembed.errors import ConfigError
from poolembed.runner.device import NEVER_FLOAT16, resolve_device, resolve_dtype

HALVES = [torch.float16, torch.bfloat16]


def dtype_of(name, *, device="cpu", stored=torch.float32, model_type="bert"):
    return resolve_dtype(name, device=torch.device(device), stored=stored, model_type=model_type)


def test_the_cpu_is_always_there():
    assert resolve_device("cpu") == torch.device("cpu")


def test_auto_takes_the_best_device_there_is():
    chosen = resolve_device("auto").type
    if torch.cuda.is_available():
        assert chosen == "cuda"
    else:
        assert chosen == ("mps" if torch.backends.mps.is_available() else "cpu")


def test_a_cuda_device_that_is_not_there_is_refused():
    number = torch.cuda.device_count()
    with pytest.raises(ConfigError, match=f"--device cuda:{number}: torch sees {number} CUDA devices"):
        resolve_device(f"cuda:{number}")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_device_is_refused():
    with pytest.raises(ConfigError, match="torch sees 0 CUDA devices"):
        resolve_device("cuda")


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="there is an MPS device")
def test_mps_without_a_device_is_refused():
    with pytest.raises(ConfigError, match="no MPS device"):
        resolve_device("mps")


@pytest.mark.gpu
def test_cuda_without_a_number_is_the_first_device():
    assert resolve_device("cuda") == resolve_device("cuda:0") == torch.device("cuda", 0)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_precision_asked_for_is_used(name, device):
    assert dtype_of(name, device=device) is getattr(torch, name)


@pytest.mark.parametrize("stored", [torch.float32, *HALVES])
@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_auto_is_float32_off_cuda(device, stored):
    assert dtype_of("auto", device=device, stored=stored) is torch.float32


@pytest.mark.parametrize("stored", HALVES)
def test_auto_keeps_half_precision_on_cuda(stored):
    assert dtype_of("auto", device="cuda", stored=stored) is stored


@pytest.mark.parametrize("stored", [torch.float32, torch.float64, torch.int8])
def test_auto_lowers_no_precision_on_cuda(stored):
    assert dtype_of("auto", device="cuda", stored=stored) is torch.float32


@pytest.mark.parametrize("model_type", NEVER_FLOAT16)
def test_a_model_that_overflows_is_not_run_in_float16(model_type):
    assert dtype_of("auto", device="cuda", stored=torch.float16, model_type=model_type) is torch.bfloat16
    assert dtype_of("bfloat16", model_type=model_type) is torch.bfloat16
    with pytest.raises(ConfigError, match=f"{model_type} models overflow in float16"):
        dtype_of("float16", model_type=model_type)


def test_eight_bits_are_made_of_float32_on_a_cpu():
    assert dtype_of("int8", stored=torch.float16) == torch.float32


def test_eight_bits_elsewhere_are_refused():
    with pytest.raises(ConfigError, match="--dtype int8 is for the CPU, not for cuda"):
        dtype_of("int8", device="cuda")
