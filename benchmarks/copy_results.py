"""Write the copy of ``results/`` that is part of the package: python benchmarks/copy_results.py"""

from pathlib import Path

from debiaspl.files import write_text
from debiaspl.recipes.result_files import COPY, copy_text

if __name__ == "__main__":
    write_text(COPY, copy_text(Path(__file__).parents[1] / "results"))
    print(f"{COPY}: {COPY.stat().st_size:,} bytes")
