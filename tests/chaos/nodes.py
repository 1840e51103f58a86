"""An emulated Ray cluster of two nodes here; every line on stdin replaces the second one.

``python -m tests.chaos.nodes``: writes the address, and then the pid of the second node's raylet
each time that the node is there.
"""

from __future__ import annotations

import sys
from typing import Any

from ray.cluster_utils import Cluster

NUM_TRIES = 5
NODE = {"num_cpus": 4, "object_store_memory": 100 << 20}


def raylet_of(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


def added(cluster: Cluster) -> Any:
    """Return a node that was added; on a busy machine one may not be there in Ray's time."""
    for _ in range(NUM_TRIES - 1):
        try:
            return cluster.add_node(**NODE)
        except Exception as error:  # noqa: BLE001 - Ray raises no other
            print(error, file=sys.stderr, flush=True)
    return cluster.add_node(**NODE)


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    second = added(cluster)
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    print(raylet_of(second), flush=True)
    for _ in sys.stdin:
        cluster.remove_node(second, allow_graceful=False)
        second = added(cluster)
        print(raylet_of(second), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
