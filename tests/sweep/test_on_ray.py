from contextlib import suppress

import pytest

from helpers import spawn
from sweep.folders import done, finished, records, starts, wait_for, write_sweep

pytest.importorskip("ray", reason="to test --engine ray: pip install 'calm-bench[ray]'")
pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster(monkeypatch):
    """Two machines, played by processes of this one; the second can be lost."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    cluster = Cluster()
    patiently(cluster.add_node, **options)
    yield cluster, patiently(cluster.add_node, **options)
    cluster.shutdown()


def patiently(start, **options):
    """Start a machine; on a busy one Ray's half a minute may not be enough."""
    for _ in range(3):
        with suppress(Exception):
            return start(**options)
    return start(**options)


def under_way(out):
    """How many runs have a checkpoint and are far from their end."""
    saved = {path.parents[1].name for path in out.glob("*/checkpoint/*.safetensors")}
    return sum(name in saved and data.count(b"\n") < 80 for name, data in records(out).items())


def test_a_machine_that_is_lost_changes_nothing(cluster, tmp_path):
    (machines, second), out = cluster, tmp_path / "out"
    longer = {"fragments": 4, "mean_length": 8000}
    sweep = write_sweep(tmp_path, learners=["user_learners:Slow"], seeds=3, streams=[longer])
    assert done(sweep, "--workers", 4, "--out", tmp_path / "local")[0] == 0
    driver = spawn(
        "sweep", sweep, "--engine", "ray", "--address", machines.address,
        "--checkpoint-seconds", 0.05,
    )  # fmt: skip
    wait_for(lambda: under_way(out) == 2)  # one on each
    machines.remove_node(second, allow_graceful=False)
    _, errors = driver.communicate()
    assert driver.returncode == 0, errors
    assert "its task was lost" in errors
    assert records(out) == records(tmp_path / "local")
    begun_at = [step for folder in finished(out) for step in starts(folder)]
    assert begun_at.count(0) == 3  # none began anew
