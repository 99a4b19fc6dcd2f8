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
    cluster = Cluster(initialize_head=True, head_node_args=options)
    yield cluster, cluster.add_node(**options)
    cluster.shutdown()


def under_way(out, whole):
    """Runs that have a checkpoint, and more than half of their records still to come."""
    return [name for name, data in records(out).items() if 999 < len(data) < len(whole[name]) / 2]


def test_a_machine_that_is_lost_changes_nothing(cluster, tmp_path):
    (machines, second), out = cluster, tmp_path / "out"
    longer = {"fragments": 4, "mean_length": 4000}
    sweep = write_sweep(tmp_path, learners=["user_learners:Slow"], seeds=6, streams=[longer])
    assert done(sweep, "--workers", 4, "--out", tmp_path / "local")[0] == 0
    whole = records(tmp_path / "local")
    driver = spawn(
        "sweep", sweep, "--engine", "ray", "--address", machines.address,
        "--checkpoint-seconds", 0.05,
    )  # fmt: skip
    wait_for(lambda: len(under_way(out, whole)) == 2 and finished(out))
    machines.remove_node(second, allow_graceful=False)
    _, errors = driver.communicate()
    assert driver.returncode == 0, errors
    assert "its task was lost" in errors
    assert records(out) == whole
    begun_at = sorted(step for folder in finished(out) for step in starts(folder))
    assert begun_at[:-1] == [0] * 6
    assert begun_at[-1] > 0
