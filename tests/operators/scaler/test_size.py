"""How much code an operator of scalers takes."""

from pathlib import Path
from typing import Final

from scripts.generate.comparison import code_lines

MODULES: Final = ("model.py", "triggers.py", "metrics_api.py", "operator.py")


def test_the_operator_has_at_most_500_lines_of_code() -> None:
    texts = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in MODULES]
    assert 0 < sum(code_lines(text, ".py") for text in texts) <= 500
