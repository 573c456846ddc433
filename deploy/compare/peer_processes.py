"""Starts the processes of a peer: one, or several joined by torch.distributed over gloo."""

from torch import distributed
from torch import multiprocessing


def run_processes(arguments, run):
    """Calls run(rank, arguments) in arguments.processes processes that share a group; for 1, in this
    process and without a group."""
    if arguments.batch % arguments.processes != 0:
        raise SystemExit("--batch must be a multiple of --processes")
    if arguments.processes == 1:
        run(0, arguments)
        return
    # The parent serves the rendezvous on a free port (0: the system chooses); the children connect.
    store = distributed.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    multiprocessing.spawn(_join_and_run, (arguments, store.port, run), nprocs=arguments.processes)


def _join_and_run(rank, arguments, port, run):
    store = distributed.TCPStore("127.0.0.1", port, arguments.processes, is_master=False)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=arguments.processes)
    run(rank, arguments)
    distributed.destroy_process_group()
