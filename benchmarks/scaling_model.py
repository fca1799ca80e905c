"""What training on many GPUs would cost, on paper: python benchmarks/scaling_model.py [--json] [--write]

Nothing is timed here. Operations and bytes are counted layer by layer; times come from files in results/ where there is
a measurement, and from the assumptions of scaling_parts/origin.py where there is none. Prints the tables of
docs/lab/scaling.md; ``--write`` puts them into that page, between the marks that name them.
"""

import argparse
import json
import re

from scaling_parts import tables_network, tables_runs, tables_short, tables_work
from scaling_parts.count import resnet50, wide_resnet
from scaling_parts.links import links
from scaling_parts.messages import group_bytes, prior_bytes, statistics_bytes
from scaling_parts.origin import ASSUMPTIONS, GPUS, MEASURED, ROOT, measured
from scaling_parts.together import efficiency
from scaling_parts.work import works

PAGE = ROOT / "docs" / "lab" / "scaling.md"

TABLES = {
    "counted": tables_work.counted,
    "steps": tables_work.steps,
    "exchanged": tables_network.exchanged,
    "messages": tables_network.small_messages,
    "efficiency": tables_network.efficiencies,
    "synchronised": tables_network.synchronised,
    "divided": tables_network.divided,
    "drawn": tables_network.drawn,
    "runs": tables_runs.runs,
    "reading": tables_runs.reading,
    "billion": tables_runs.billion,
    "batches": tables_runs.batches,
    "breaks": tables_short.breaks,
    "measured": tables_work.known,
    "assumptions": tables_work.assumptions,
}
ON_PAGE = "breaks", "runs"


def numbers() -> dict[str, object]:
    """The same for programs: efficiencies by step, link, overlap and GPUs, and what they rest on."""
    found = works()
    curves = {
        key: {
            link.name: {
                name: {gpus: round(efficiency(work, gpus, link, overlap), 4) for gpus in GPUS}
                for name, overlap in (("no overlap", False), ("overlap", True))
            }
            for link in links()
        }
        for key, work in found.items()
    }
    return {
        "networks": {
            network.name: {
                "parameters": network.parameters,
                "macs": network.macs,
                "gradient_bytes": {"bf16": network.gradient_bytes(2), "float32": network.gradient_bytes(4)},
                "prior_bytes": prior_bytes(network),
                "statistics_bytes": statistics_bytes(network),
            }
            for network in (wide_resnet(), resnet50())
        },
        "steps": {
            key: {"flop": w.flop, "group_bytes": group_bytes(w), "ms": 1000 * w.seconds, "origin": w.origin}
            for key, w in found.items()
        },
        "efficiency": curves,
        "measured": {name: {"value": measured(name), "file": file} for name, (file, _) in MEASURED.items()},
        "assumed": {name: {"value": value, "unit": unit} for name, (value, unit, _) in ASSUMPTIONS.items()},
    }


def filled(page: str) -> str:
    """The page with every table as it is computed now."""
    for name in ON_PAGE:
        marked = re.compile(rf"(<!-- {name} -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)")
        if len(marked.findall(page)) != 1:
            raise SystemExit(f"the page has no place for the table {name}: expected <!-- {name} --> ... <!-- end -->.")
        text = TABLES[name]()
        page = marked.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", page)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print numbers for programs instead of tables")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/lab/scaling.md")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(filled(PAGE.read_text()))
    if options.json:
        print(json.dumps(numbers(), indent=2))
    elif not options.write:
        print("\n\n".join(f"{name}\n\n{make()}" for name, make in TABLES.items()))


if __name__ == "__main__":
    main()
