"""How much code the operators of workers take."""

from pathlib import Path
from typing import Final

from scripts.generate.comparison import code_lines

MODULES: Final = ("model.py", "scheduler.py", "clusters.py", "groups.py", "runs.py", "scalers.py")


def test_the_operators_have_at_most_450_lines_of_code() -> None:
    texts = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in MODULES]
    assert 0 < sum(code_lines(text, ".py") for text in texts) <= 450
