"""Write the picture of the components of `examples/web`, which the README and docs/operators/components.md show.

python -m scripts.generate.component_picture
"""

from pathlib import Path
from typing import Final

from examples.web.operator import components
from examples.web.shop import Shop
from ocf.objects import load_document
from ocf.ownership.picture import standalone_svg
from ocf.runtime.component_diagram import component_diagram

__all__ = ["PICTURE", "render"]

ROOT: Final = Path(__file__).parents[2]
PICTURE: Final = ROOT / "docs" / "pictures" / "components.svg"
_OWNER: Final = ROOT / "examples" / "web" / "shop.yaml"


def render() -> str:
    """Return the picture."""
    shop = Shop.model_validate(load_document(_OWNER.read_text(encoding="utf-8")))
    return standalone_svg(component_diagram(f"Shop {shop.key.name}", components(shop)))


if __name__ == "__main__":
    PICTURE.write_text(render(), encoding="utf-8")
