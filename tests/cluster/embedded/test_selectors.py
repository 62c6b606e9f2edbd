"""Selectors as requests carry them."""

import pytest

from ocf.cluster.embedded.selectors import label_predicate, selector_text
from ocf.errors import BadRequestError
from ocf.objects import Manifest


def labelled(**labels: str) -> Manifest:
    return {"metadata": {"labels": labels}}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        pytest.param("app=web", True, id="equal"),
        pytest.param("app==web", True, id="equal twice"),
        pytest.param("app = web , tier = back", True, id="spaces"),
        pytest.param("app=other", False, id="another value"),
        pytest.param("app!=web", False, id="not equal"),
        pytest.param("missing!=web", True, id="what is missing is not equal"),
        pytest.param("app", True, id="exists"),
        pytest.param("!app", False, id="exists not"),
        pytest.param("!missing", True, id="missing exists not"),
        pytest.param("app in (api, web)", True, id="in"),
        pytest.param("app in (api)", False, id="not in the set"),
        pytest.param("missing in (api)", False, id="what is missing is in no set"),
        pytest.param("app notin (api)", True, id="notin"),
        pytest.param("missing notin (api)", True, id="what is missing is notin every set"),
        pytest.param("empty=", True, id="empty value"),
        pytest.param("empty in ()", True, id="set of the empty value"),
        pytest.param("size>2", True, id="greater"),
        pytest.param("size<2", False, id="less"),
        pytest.param("app>2", False, id="a text is not greater"),
        pytest.param("app=web,size>2,!missing", True, id="all terms"),
        pytest.param("app=web,size>3", False, id="one term fails"),
        pytest.param("example.com/a-b_c.d=1", True, id="qualified name"),
        pytest.param("in=x", True, id="a key that is an operator elsewhere"),
    ],
)
def test_what_a_selector_selects(selector: str, selected: bool) -> None:
    predicate = label_predicate(selector)
    manifest = labelled(app="web", tier="back", size="3", empty="", **{"example.com/a-b_c.d": "1", "in": "x"})

    assert predicate is not None
    assert predicate(manifest) is selected


@pytest.mark.parametrize("selector", ["", " "])
def test_an_empty_selector_selects_everything(selector: str) -> None:
    assert label_predicate(selector) is None


def test_an_object_without_labels_is_no_trouble() -> None:
    predicate = label_predicate("!app")

    assert predicate is not None
    assert predicate({"metadata": {}})


@pytest.mark.parametrize("selector", ["=a", "a=b,,", "a in b", "a in (b", "a b", "!", "a=b)", "a>x", "a in (b c)", ","])
def test_a_malformed_selector_is_a_bad_request(selector: str) -> None:
    with pytest.raises(BadRequestError):
        label_predicate(selector)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "", id="none"),
        pytest.param({}, "", id="empty"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels by name"),
        pytest.param(
            {"matchLabels": {"x": "1"}, "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["q", "p"]}]},
            "a notin (p,q),x=1",
            id="values in order",
        ),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a", id="not there"),
    ],
)
def test_the_text_of_an_objects_selector(selector: dict[str, object] | None, text: str) -> None:
    assert selector_text(selector) == text
