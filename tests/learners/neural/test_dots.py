import pytest
import torch

from calm.learners.neural import dots


@pytest.mark.skipif(not dots.THERE, reason="the processor has no instruction for it")
@pytest.mark.parametrize("rows", [1, 5, 13])
@pytest.mark.parametrize(("k", "columns"), [(2, 3), (10, 64), (36, 150)])
@pytest.mark.parametrize("turned", [False, True])
def test_it_is_a_product(rows, k, columns, turned):
    source = torch.Generator().manual_seed(0)
    x = torch.randn(rows, k, generator=source).bfloat16()
    w = torch.randn(k, columns, generator=source).bfloat16()
    w = w.t().contiguous().t() if turned else w
    laid, room = dots.shelf(k, columns), dots.room(rows, columns)
    dots.lay_out(w.view(torch.uint16).numpy(), laid)
    for _ in range(2):
        dots.multiply(x.view(torch.uint16).numpy(), laid, room)
        found = torch.from_numpy(room)
        assert torch.allclose(found[:, :columns], x.float() @ w.float(), atol=1e-4)
        assert not found[:, columns:].any()
