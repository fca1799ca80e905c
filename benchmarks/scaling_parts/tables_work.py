"""Tables of what is counted: networks, steps, and where all other numbers come from."""

from scaling_parts.count import resnet50, wide_resnet
from scaling_parts.form import table
from scaling_parts.origin import ASSUMPTIONS, MEASURED, measured
from scaling_parts.work import works


def counted() -> str:
    rows = []
    for network in (wide_resnet(), resnet50()):
        half, full = (network.gradient_bytes(of_weights) / 1e6 for of_weights in (2, 4))
        sizes = [f"{network.parameters:,}", f"{network.macs / 1e9:.3f}", f"{len(network.norms)}"]
        rows.append([network.name, *sizes, f"{sum(network.norms):,}", f"{half:.2f}", f"{full:.2f}"])
    names = ["parameters", "GMAC an image", "norms", "their channels", "gradients, bf16, MB", "gradients, float32, MB"]
    return table(["network", *names], rows)


def steps() -> str:
    head = ["step", "views forward only", "views forward and backward", "TFLOP", "ms", "TFLOP/s", "ms come from"]
    rows = []
    for work in works().values():
        rate = work.flop / work.seconds / 1e12
        numbers = [f"{work.forward}", f"{work.both}", f"{work.flop / 1e12:.2f}", f"{1000 * work.seconds:.2f}"]
        rows.append([work.name, *numbers, f"{rate:.0f}", work.origin])
    supervised = 2 * 3 * resnet50().macs * 2470 / 1e12
    published = ["0", "2470 in 1 s", "", "", f"{supervised:.0f}", "published, NVIDIA/DeepLearningExamples"]
    return table(head, [*rows, ["ResNet-50, supervised, A100", *published]])


def known() -> str:
    rows = [
        [name, f"{measured(name):g}", f"[{file}](../../{file}), `{field}`"] for name, (file, field) in MEASURED.items()
    ]
    return table(["measured", "value", "where"], rows)


def assumptions() -> str:
    return table(["assumed", "value", "why"], [[unit, f"{value:,}", why] for value, unit, why in ASSUMPTIONS.values()])
