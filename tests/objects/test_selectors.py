"""Label selectors in both spellings, their identity, and field selectors."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ManifestError
from ocf.objects.selectors import FieldTerm, LabelSelector, parse_field_selector, selector_identity, selects

keys = st.sampled_from(["a", "b", "in", "example.com/c"])
values = st.sampled_from(["", "x", "y", "notin"])
expressions = st.one_of(
    st.fixed_dictionaries(
        {"key": keys, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(values, min_size=1, max_size=3)}
    ),
    st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
objects = st.fixed_dictionaries(
    {}, optional={"matchLabels": st.dictionaries(keys, values), "matchExpressions": st.lists(expressions, max_size=3)}
)
label_sets = st.dictionaries(keys, values)


class TestNothingAndEverything:
    """Absent and empty are opposites."""

    @pytest.mark.parametrize("labels", [{}, {"a": "b"}])
    def test_no_selector_matches_nothing(self, labels: dict[str, str]) -> None:
        assert not LabelSelector.of(None).matches(labels)

    @pytest.mark.parametrize("labels", [{}, {"a": "b"}])
    @pytest.mark.parametrize(
        "selector",
        [
            pytest.param(LabelSelector.of({}), id="empty object"),
            pytest.param(LabelSelector.of({"matchLabels": {}, "matchExpressions": []}), id="empty parts"),
            pytest.param(LabelSelector.of({"matchLabels": None, "matchExpressions": None}), id="null parts"),
            pytest.param(LabelSelector.parse(""), id="empty text"),
            pytest.param(LabelSelector(), id="no requirements"),
        ],
    )
    def test_the_empty_selector_matches_everything(self, selector: LabelSelector, labels: dict[str, str]) -> None:
        assert selector.matches(labels)
        assert str(selector) == ""

    def test_the_text_of_no_selector_is_none_that_could_be_sent(self) -> None:
        """An empty text would select everything."""
        with pytest.raises(ManifestError):
            LabelSelector.parse(str(LabelSelector.of(None)))


class TestObjectForm:
    def test_every_operator_and_label_is_read(self) -> None:
        selector = LabelSelector.of(
            {
                "matchLabels": {"z": "1", "a": ""},
                "matchExpressions": [
                    {"key": "m", "operator": "In", "values": ["y", "x", "y"]},
                    {"key": "n", "operator": "NotIn", "values": ["x"]},
                    {"key": "b", "operator": "Exists", "values": []},
                    {"key": "c", "operator": "DoesNotExist"},
                ],
            }
        )

        assert str(selector) == "a=,b,!c,m in (x,y),n notin (x),z=1"

    @pytest.mark.parametrize(
        ("selector", "path", "detail"),
        [
            pytest.param([], "", "must be a map", id="list"),
            pytest.param({"matchlabels": {}}, "", "unknown field 'matchlabels'", id="misspelt field"),
            pytest.param({"matchLabels": []}, "matchLabels", "must be a map, not list", id="labels as a list"),
            pytest.param({"matchLabels": {"a": 1}}, "matchLabels", "must be texts, not 1", id="value is a number"),
            pytest.param({"matchLabels": {1: "a"}}, "matchLabels", "must be texts, not 1", id="label is a number"),
            pytest.param({"matchLabels": {"-a": "b"}}, "matchLabels.key", "'-a' is not a label", id="malformed label"),
            pytest.param({"matchLabels": {"a": "-"}}, "matchLabels.values[0]", "not a label value", id="bad value"),
            pytest.param({"matchExpressions": {}}, "matchExpressions", "must be a list", id="expressions as a map"),
            pytest.param(
                {"matchExpressions": ["a"]}, "matchExpressions[0]", "must be a map", id="expression as a text"
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": "Exists", "value": "b"}]},
                "matchExpressions[0]",
                "unknown field 'value'; there are key, operator, values",
                id="misspelt field of an expression",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a"}]},
                "matchExpressions[0].operator",
                "must be one of In, NotIn, Exists, DoesNotExist, not None",
                id="no operator",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": ["In"]}]},
                "matchExpressions[0].operator",
                "must be one of",
                id="operator is a list",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
                "matchExpressions[0].operator",
                "not 'Gt'",
                id="operator of the text form only",
            ),
            pytest.param(
                {"matchExpressions": [{"operator": "Exists"}]},
                "matchExpressions[0]",
                "must be texts, not None",
                id="no key",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
                "matchExpressions[0].values",
                "must be a list, not str",
                id="values as a text",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "-", "a"]}]},
                "matchExpressions[0].values[1]",
                "'-' is not a label value",
                id="malformed value, at its own index",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": "NotIn"}]},
                "matchExpressions[0].values",
                "at least one value",
                id="not in without values",
            ),
        ],
    )
    def test_an_invalid_selector_is_rejected_with_its_field(self, selector: Any, path: str, detail: str) -> None:
        with pytest.raises(ManifestError, match=r"^label selector: ") as caught:
            LabelSelector.of(selector)

        assert caught.value.problems[0].path == path
        assert detail in caught.value.problems[0].detail

    def test_all_problems_are_reported_together(self) -> None:
        with pytest.raises(ManifestError) as caught:
            LabelSelector.of({"matchLabels": {"-": "b"}, "matchExpressions": [{}, {"key": "a", "operator": "In"}]})

        assert [problem.path for problem in caught.value.problems] == [
            "matchLabels.key",
            "matchExpressions[0].operator",
            "matchExpressions[1].values",
        ]

    @given(objects, label_sets)
    def test_both_forms_mean_the_same(self, selector: dict[str, Any], labels: dict[str, str]) -> None:
        """What is read from an object prints as a text that is read as the same selector."""
        read = LabelSelector.of(selector)

        assert LabelSelector.parse(str(read)) == read
        assert LabelSelector.parse(str(read)).matches(labels) == read.matches(labels)

    @given(objects, label_sets)
    def test_all_requirements_must_be_met(self, selector: dict[str, Any], labels: dict[str, str]) -> None:
        read = LabelSelector.of(selector)

        assert read.matches(labels) == all(LabelSelector((part,)).matches(labels) for part in read.requirements)


def test_requirements_are_sorted_by_label() -> None:
    """Equal selectors are equal, however they were written."""
    assert LabelSelector.parse("b,!a,c=d") == LabelSelector.parse("c=d,b,!a")


def test_a_selector_can_be_a_key() -> None:
    assert len({LabelSelector.parse("a=b,c"), LabelSelector.parse("c, a=b")}) == 1


def expression(*items: str) -> dict[str, Any]:
    key, operator, *rest = items
    return {"key": key, "operator": operator, "values": rest}


class TestIdentity:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            pytest.param(None, None, id="none"),
            pytest.param({}, {}, id="empty"),
            pytest.param({}, {"matchLabels": {}, "matchExpressions": []}, id="absent and empty parts"),
            pytest.param({}, {"matchLabels": None, "matchExpressions": None}, id="absent and null parts"),
            pytest.param(
                {"matchLabels": {"a": "1", "b": "2"}}, {"matchLabels": {"b": "2", "a": "1"}}, id="labels in any order"
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "In", "x"), expression("b", "Exists")]},
                {"matchExpressions": [expression("b", "Exists"), expression("a", "In", "x")]},
                id="expressions in any order",
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "In", "x", "y")]},
                {"matchExpressions": [expression("a", "In", "y", "x")]},
                id="values in any order",
            ),
            pytest.param(
                {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                {"matchExpressions": [expression("a", "Exists")]},
                id="absent and empty values",
            ),
        ],
    )
    def test_same(self, one: dict[str, Any] | None, other: dict[str, Any] | None) -> None:
        assert selector_identity(one) == selector_identity(other)
        assert hash(selector_identity(one)) == hash(selector_identity(other))

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            pytest.param(None, {}, id="none and empty"),
            pytest.param({"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "2"}}, id="value of a label"),
            pytest.param({"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "1", "b": "1"}}, id="one label more"),
            pytest.param(
                {"matchExpressions": [expression("a", "Exists")]},
                {"matchExpressions": [expression("a", "Exists"), expression("a", "Exists")]},
                id="number of equal expressions",
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "In", "x")]},
                {"matchExpressions": [expression("a", "In", "x", "x")]},
                id="number of equal values",
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "Exists")]},
                {"matchExpressions": [expression("A", "Exists")]},
                id="case of a key",
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "In", "x")]},
                {"matchExpressions": [expression("a", "NotIn", "x")]},
                id="operator",
            ),
            pytest.param(
                {"matchLabels": {"a": "b"}},
                {"matchExpressions": [expression("a", "In", "b")]},
                id="the same in other words",
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "In")]},
                {"matchExpressions": [expression("a", "In", "")]},
                id="no value and the empty value",
            ),
            pytest.param(
                {"matchExpressions": [expression("a", "In", "x\0y")]},
                {"matchExpressions": [expression("a", "In", "x", "y")]},
                id="zero byte in a value and two values",
            ),
        ],
    )
    def test_different(self, one: dict[str, Any] | None, other: dict[str, Any] | None) -> None:
        assert selector_identity(one) != selector_identity(other)

    @given(st.lists(expressions, max_size=3))
    def test_the_order_of_expressions_never_counts(self, items: list[dict[str, Any]]) -> None:
        identities = {selector_identity({"matchExpressions": list(order)}) for order in permutations(items)}

        assert len(identities) == 1


class TestFieldSelector:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("", [], id="empty"),
            pytest.param("metadata.name=x", [("metadata.name", "=", "x")], id="equal"),
            pytest.param("metadata.name==x", [("metadata.name", "=", "x")], id="equal, written double"),
            pytest.param("status.phase!=y", [("status.phase", "!=", "y")], id="not equal"),
            pytest.param("b=1,a!=2", [("b", "=", "1"), ("a", "!=", "2")], id="several, in the order written"),
            pytest.param("a=", [("a", "=", "")], id="empty value"),
            pytest.param(",a=b,,", [("a", "=", "b")], id="empty terms are skipped"),
            pytest.param(r"a=b\,c\=d\\", [("a", "=", r"b,c=d" + "\\")], id="escapes"),
            pytest.param(r"a=b\\,c=d", [("a", "=", "b\\"), ("c", "=", "d")], id="a backslash before a comma"),
            pytest.param("a= b ", [("a", "=", " b ")], id="blanks count"),
            pytest.param("a=b!c", [("a", "=", "b!c")], id="exclamation mark in a value"),
            pytest.param("a\n=b\n", [("a\n", "=", "b\n")], id="line ends count"),
        ],
    )
    def test_reads(self, text: str, expected: list[tuple[str, str, str]]) -> None:
        assert parse_field_selector(text) == tuple(FieldTerm(*term) for term in expected)

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("a", id="no operator"),
            pytest.param("a!b", id="half an operator"),
            pytest.param("a in (b)", id="operator of labels"),
            pytest.param("=b", id="no field"),
            pytest.param("a=b=c", id="bare sign in a value"),
            pytest.param("a===b", id="three signs"),
            pytest.param(r"a=b\c", id="unknown escape"),
            pytest.param("a=b\\", id="backslash at the end"),
            pytest.param("x=y,a", id="second term"),
        ],
    )
    def test_rejects(self, text: str) -> None:
        with pytest.raises(ManifestError, match=r"^field selector: '"):
            parse_field_selector(text)

    @given(st.lists(st.tuples(st.text("ab.", min_size=1), st.sampled_from(["=", "!="]), st.text("ab=,\\ !\n"))))
    def test_escaped_values_are_read_back(self, terms: list[tuple[str, str, str]]) -> None:
        escapes = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})
        text = ",".join(f"{path}{operator}{value.translate(escapes)}" for path, operator, value in terms)

        assert parse_field_selector(text) == tuple(FieldTerm(*term) for term in terms)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("", None, True),
        ({}, None, True),
        (None, {"app": "web"}, False),
        ("app=web", {"app": "web"}, True),
        ("app=web", None, False),
        ("app!=web", None, True),
        ({"matchLabels": {"app": "web"}}, {"app": "web", "b": "c"}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {"app": "web"}, False),
    ],
)
def test_selects_in_both_forms(selector: Any, labels: dict[str, str] | None, expected: bool) -> None:
    assert selects(selector, labels) is expected


@pytest.mark.parametrize("selector", ["app in", {"matchExpressions": [{"key": "app", "operator": "Has"}]}])
def test_an_invalid_selector_is_an_error(selector: Any) -> None:
    with pytest.raises(ManifestError):
        selects(selector, {"app": "web"})
