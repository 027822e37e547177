"""`tilewright.matmul` on a machine of several GPUs: a call runs where its tensors lie."""

import threading

import pytest
import torch

from tilewright import matmul
from tilewright.runtime import LaunchError
from tilewright.tools.main import main

SECOND = "cuda:1"


@pytest.fixture(autouse=True)
def two_gpus(gpu):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU here, this needs two")
    torch._dynamo.reset()


def test_a_call_follows_its_tensors(draws, assert_product):
    for place in (SECOND, "cuda:0", SECOND, "cuda:0"):
        a, b = draws.normal(136, 72, place=place), draws.transposed(200, 72, place=place)
        assert_product(matmul(a, b), a, b)
        assert torch.cuda.current_device() == 0


def test_operands_on_two_gpus_are_refused(draws):
    a, b = draws.normal(40, 72, place=SECOND), draws.normal(56, 72)
    with pytest.raises(LaunchError, match=r"^tensor 'b': must be on cuda:1, got cuda:0; move it"):
        matmul(a, b)


def test_a_launch_is_on_the_current_stream_of_its_gpu(draws, assert_product):
    a, b = draws.normal(136, 72, place=SECOND), draws.normal(200, 72, place=SECOND)
    late, stream = torch.zeros_like(a), torch.cuda.Stream(SECOND)
    for _ in range(2):
        torch.cuda.synchronize(SECOND)
        with torch.cuda.stream(stream):
            late.zero_()
            torch.cuda._sleep(50_000_000)
            late.copy_(a)
            c = matmul(late, b).clone()
        stream.synchronize()
        assert_product(c, a, b)


def test_a_thread_for_each_gpu_multiplies_at_the_same_time(draws, assert_product):
    places, results = ["cuda:0", SECOND] * 3, {}
    operands = [
        (draws.normal(64 + 8 * i, 72, place=place), draws.normal(88, 72, place=place))
        for i, place in enumerate(places)
    ]

    def work(i):
        for _ in range(20):
            results[i] = matmul(*operands[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(places))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, (a, b) in enumerate(operands):
        assert_product(results[i], a, b)


def test_gradients_and_compiled_code_stay_on_their_gpu(draws, assert_product):
    compiled = torch.compile(lambda a, b: matmul(a, b), fullgraph=True, dynamic=False)
    a = draws.normal(136, 72, place=SECOND).requires_grad_()
    b, weight = draws.normal(200, 72, place=SECOND), draws.normal(136, 200, place=SECOND)
    for product in (matmul, compiled):
        a.grad = None
        product(a, b).backward(weight)
        assert_product(a.grad, weight, b.T)


def test_a_graph_of_the_second_gpu_replays_there(draws, assert_product):
    a, b = draws.normal(136, 72, place=SECOND), draws.normal(200, 72, place=SECOND)
    with torch.cuda.device(SECOND):
        graph = torch.cuda.CUDAGraph()
        # A stream of its own: torch keeps the one that it makes, for graphs of every GPU.
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            c = matmul(a, b)
        a.copy_(draws.normal(136, 72))
        graph.replay()
        torch.cuda.synchronize()
    assert_product(c, a, b)


def test_run_takes_the_gpu_that_is_named(capsys):
    words = ["run", "--m", "136", "--n", "200", "--k", "72", "--device", SECOND]
    assert main(words) == 0
    assert SECOND in capsys.readouterr().out
