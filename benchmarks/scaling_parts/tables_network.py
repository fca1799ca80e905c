"""Tables of messages, and of what they leave of the speed."""

from scaling_parts.feeding import random_bytes
from scaling_parts.form import kilobytes, table
from scaling_parts.links import latency, links, on_the_wire
from scaling_parts.messages import backward_norms, forward_norms, group_bytes, norm_bytes, prior_bytes, statistics_bytes
from scaling_parts.origin import GPUS
from scaling_parts.together import efficiency, step_seconds
from scaling_parts.work import Work, floor_seconds, shared, works

SOME = (2, 8, 64, 1024)


def exchanged() -> str:
    rows = []
    for work in (works()["separate"], works()["one-high"]):
        network, norms = work.network, [*forward_norms(work), *backward_norms(work)]
        rows += [
            _reduced(work, "gradients, as they are sent", network.gradient_bytes(2)),
            _reduced(work, "gradients, if all were float32", network.gradient_bytes(4)),
            _reduced(work, "prior", prior_bytes(network)),
            _reduced(work, "running statistics of batch norm", statistics_bytes(network)),
            _reduced(work, "averaged teacher", 0),
        ]
        gathered = [kilobytes(norm_bytes(work, gpus)) for gpus in SOME]
        rows.append([f"{work.name}: batch norm, if synchronised ({len(norms)} messages)", *gathered])
        rows.append(_reduced(work, "the same, if it were summed", sum(norms)))
    multi = works()["multi-high"]
    rows.append(_reduced(multi, "groups of CLD, beside the above", group_bytes(multi)))
    return table(["kB a step and GPU, each way", *(f"{gpus:,} GPUs" for gpus in SOME)], rows)


def _reduced(work: Work, name: str, size: int) -> list[str]:
    return [f"{work.name}: {name}", *(kilobytes(on_the_wire(size, gpus)) for gpus in SOME)]


def small_messages() -> str:
    wide, rows = [gpus for gpus in GPUS if gpus > 1], []
    for name, link in (("InfiniBand", links()[0]), ("Ethernet", links()[2])):
        for way, tree in (("tree", True), ("flat ring", False)):
            rows.append([f"{name}, {way}", *(f"{1e6 * latency(gpus, link, tree):,.0f}" for gpus in wide)])
    return table(["us for a tiny message", *(f"{gpus:,}" for gpus in wide)], rows)


def efficiencies() -> str:
    rows = []
    for key in ("separate", "one-low", "one-high"):
        work = works()[key]
        for link, of_weights in (*((link, 2) for link in links()), (links()[-1], 4)):
            cells = [
                " / ".join(f"{100 * efficiency(work, gpus, link, way, False, of_weights):.0f}" for way in (False, True))
                for gpus in GPUS
            ]
            rows.append([f"{work.label}; {link.name}{', float32' if of_weights == 4 else ''}", *cells])
    return table(["step; between nodes", *(f"{gpus:,}" for gpus in GPUS)], rows)


def synchronised() -> str:
    rows = []
    for key in ("separate", "one-high"):
        work = works()[key]
        for link in links():
            cells = [f"{100 * efficiency(work, gpus, link, True, True):.0f}" for gpus in GPUS]
            rows.append([f"{work.label}; {link.name}", *cells])
    return table(["step; between nodes", *(f"{gpus:,}" for gpus in GPUS)], rows)


def divided() -> str:
    """The recipe's batch on more and more GPUs: ms a step and the efficiency, with overlap, the fastest link."""
    few, rows = [gpus for gpus in GPUS if gpus <= 64], []
    for key in ("separate", "one-low", "one-high"):
        work = works()[key]
        floor = f"floor {1000 * floor_seconds(work.network):.1f} ms"
        for norm, together in (("local norm", False), ("synchronised", True)):
            cells = []
            for gpus in few:
                seconds = step_seconds(shared(work, gpus), gpus, links()[0], True, together)
                cells.append(f"{1000 * seconds:.1f} ms, {100 * work.seconds / gpus / seconds:.0f} %")
            rows.append([f"{work.label}; {floor}; {norm}", *cells])
    images = [f"{works()['one-low'].images / gpus:g}" for gpus in few]
    rows.append(["ResNet-50: images that a local norm sees, of one view", *images])
    return table(["step", *(f"{gpus}" for gpus in few)], rows)


def drawn() -> str:
    rows = []
    for key in ("separate", "one-high", "multi-high"):
        work = works()[key]
        rows.append([work.name, *(f"{random_bytes(work, gpus) / 1e6:.2f}" for gpus in (1, *SOME))])
    return table(["MB of random numbers a step, on each GPU", *(f"{gpus:,}" for gpus in (1, *SOME))], rows)
