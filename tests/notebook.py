"""``examples/debiaspl.ipynb`` is ``plain_loop.py`` and a figure; ``python -m tests.notebook`` writes it, executed."""

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK, SCRIPT = EXAMPLES / "debiaspl.ipynb", EXAMPLES / "plain_loop.py"

FIGURE = """import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(5, 2.5), dpi=80)
for name, values in shares.items():
    axes.plot(range(1, 11), [100 * value for value in values], marker="o", label=name)
axes.axhline(10, color="grey", linestyle=":", label="truth")
axes.set(xlabel="class, from the most predicted one to the least", ylabel="predictions, %", ylim=(0, None))
axes.legend()
plt.show()"""


def made() -> Any:
    """The notebook without outputs: every part of the script after ``# %%`` is a cell of text and one of code."""
    opening, *parts = re.split(r"^# %%\n", SCRIPT.read_text(), flags=re.M)
    title, _, about = opening.strip().strip('"').partition("\n")
    about = about.partition("\n")[2].replace("``", "`")
    cells = [_text(f"# {title}\n\n{_line(about)}\n\nThe same as a file: [plain_loop.py](plain_loop.py).", 0)]
    for number, part in enumerate(parts, 1):
        text, code = re.fullmatch(r"((?:# [^\n]*\n)+)\n+(.*)", part, flags=re.S).groups()
        cells += [_text(_line(text.replace("# ", "")), number), _code(code.strip(), number)]
    cells.append(_text("The shares of the classes, the largest first: the flatter the line, the less bias.", 9))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=[*cells, _code(FIGURE, 9)], metadata=metadata)


def executed(notebook: Any) -> Any:
    NotebookClient(notebook, timeout=300, record_timing=False, resources={"metadata": {"path": EXAMPLES}}).execute()
    notebook.metadata = made().metadata  # without the version of Python
    return notebook


def _line(text: str) -> str:
    return " ".join(text.split())


def _text(text: str, number: int) -> Any:
    return nbformat.v4.new_markdown_cell(text, id=f"text-{number}")


def _code(code: str, number: int) -> Any:
    return nbformat.v4.new_code_cell(code, id=f"code-{number}")


if __name__ == "__main__":
    nbformat.write(executed(made()), NOTEBOOK)
