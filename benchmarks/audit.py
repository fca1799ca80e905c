"""How long does an audit take, and how much memory? python benchmarks/audit.py [--images 100000] [--classes 1000]

Writes made-up predictions (probabilities, truth, file names and, but for CSV, embeddings of 128 numbers) into a
temporary folder, as .npz, as Parquet and as CSV, and runs ``debiaspl audit FILE --json --out PAGE`` on each, as a
process of its own. Prints seconds, peak memory and the size of the page.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.origin import origin

ROOT = Path(__file__).parent.parent
LIMITS = {"seconds": 20, "peak_mib": 2048, "page_mb": 3}
EMBEDDING = 128


def predictions(images: int, classes: int) -> dict[str, Any]:
    """A model that favours some classes and is right about half of the time."""
    random = np.random.default_rng(0)
    truth = random.integers(0, classes, images)
    bias = random.normal(0, 1, classes).astype(np.float32)
    scores = np.empty((images, classes), np.float32)
    for start in range(0, images, 1000):
        part = slice(start, min(start + 1000, images))
        rows = np.arange(part.stop - part.start)
        logits = random.standard_normal((len(rows), classes), np.float32) + bias
        logits[rows, truth[part]] += 4
        powers = np.exp(logits)
        scores[part] = powers / powers.sum(1, keepdims=True)
    names = [f"photos/{row:07d}.jpg" for row in range(images)]
    embeddings = random.standard_normal((images, EMBEDDING), np.float32)
    return {"file_name": names, "truth": truth, "probabilities": scores, "embeddings": embeddings}


def write(data: dict[str, Any], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".npz":
        np.savez(path, **data)
        return
    scores = data["probabilities"]
    if path.suffix == ".parquet":
        lists = {name: fixed(data[name]) for name in ("probabilities", "embeddings")}
        table = pa.table({"file_name": data["file_name"], "truth": data["truth"], **lists})
        pyarrow.parquet.write_table(table, path)
    else:
        columns = {f"probability:{place}": scores[:, place] for place in range(scores.shape[1])}
        pyarrow.csv.write_csv(pa.table({"file_name": data["file_name"], "truth": data["truth"], **columns}), path)


def write_all(folder: Path, images: int, classes: int, formats: list[str]) -> None:
    data = predictions(images, classes)
    for suffix in formats:
        write(data, folder / f"predictions.{suffix}")


def fixed(matrix: Any) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])


def measure(path: Path) -> dict[str, float]:
    page = path.with_suffix(".html")
    command = [sys.executable, "-m", "debiaspl", "audit", str(path), "--json", "--out", str(page)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)  # of this process alone, unlike RUSAGE_CHILDREN
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"the audit of {path.name} failed")
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_mib": round(usage.ru_maxrss / 1024),
        "page_mb": round(page.stat().st_size / 1e6, 3),
        "file_mb": round(path.stat().st_size / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--formats", default="npz,parquet,csv")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    found = {}
    formats = options.formats.split(",")
    with tempfile.TemporaryDirectory() as name:
        # In a process of its own: the peak of a child counts the memory that its parent has at the fork.
        arguments = Path(name), options.images, options.classes, formats
        writer = multiprocessing.get_context("spawn").Process(target=write_all, args=arguments)
        writer.start()
        writer.join()
        for suffix in formats:
            found[suffix] = measure(Path(name) / f"predictions.{suffix}")
    facts = {"images": options.images, "classes": options.classes, "limits": LIMITS, "measured": found}
    facts["within_limits"] = all(one[name] < limit for one in found.values() for name, limit in LIMITS.items())
    about = origin() | {"load_before": round(load, 1), "pyarrow": version("pyarrow")}
    print(json.dumps(facts | about, indent=2))


if __name__ == "__main__":
    main()
