"""Parser of CEL: precedence, literals, positions of nodes, and syntax errors."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.parser import parse
from ocf_server.cel.syntax_tree import Call, Entries, Identifier, Listing, Literal, Node, Selection, Struct
from ocf_server.cel.types import RESERVED
from ocf_server.cel.values import Uint


def shown(node: Node) -> str:
    """Return the text of a syntax tree, with brackets around each node."""
    match node:
        case Literal(value):
            return repr(value)
        case Identifier(name):
            return name
        case Selection(operand, name):
            return f"({shown(operand)} .{mark(node)}{name})"
        case Listing(items):
            return f"[{' '.join(mark(item) + shown(item.node) for item in items)}]"
        case _:
            return shown_parts(node)


def shown_parts(node: Call | Entries | Struct) -> str:
    match node:
        case Call(name, target, arguments):
            before = "" if target is None else f"{shown(target)} ."
            return f"({' '.join([before + name, *map(shown, arguments)])})"
        case Entries(entries):
            return f"{{{' '.join(f'{mark(each)}{shown(each.key)}:{shown(each.value)}' for each in entries)}}}"
        case Struct(name, fields):
            return f"{name}{{{' '.join(f'{mark(each)}{each.name}:{shown(each.value)}' for each in fields)}}}"


def mark(part: Any) -> str:
    """Return the question mark of an optional part."""
    return "?" if part.optional else ""


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("a.?b.c", "((a .?b) .c)", id="a field"),
        pytest.param("a.?b ? c : d", "(_?_:_ (a .?b) c d)", id="a field before a conditional"),
        pytest.param("a[?b]", "(_[?_] a b)", id="an index"),
        pytest.param("[?a, b]", "[?a b]", id="an item"),
        pytest.param("{?'a': b, c: d}", "{?'a':b c:d}", id="an entry"),
        pytest.param("A.b{?c: d, e: f}", "A.b{?c:d e:f}", id="a field of an object literal"),
    ],
)
def test_a_question_mark_makes_a_part_optional(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("[a, b,]", "[a b]", id="a list"),
        pytest.param("[,]", "[]", id="an empty list"),
        pytest.param("{a: b,}", "{a:b}", id="a map"),
        pytest.param("A{a: b,}", "A{a:b}", id="an object literal"),
    ],
)
def test_a_comma_may_end_a_literal(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1u", 1, id="decimal"),
        pytest.param("0x1FU", 31, id="hexadecimal"),
        pytest.param("18446744073709551615u", 2**64 - 1, id="the largest one"),
    ],
)
def test_a_number_with_u_is_unsigned(text: str, value: int) -> None:
    assert parse(text) == Literal(Uint(value), 0)
    assert isinstance(cast("Literal", parse(text)).value, Uint)


def test_a_sign_is_not_a_part_of_an_unsigned_number() -> None:
    assert shown(parse("-12u")) == "(-_ 12)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(r"b'\x41\377'", b"A\xff", id="octets"),
        pytest.param(r"B'''\n'''", b"\n", id="a line break"),
        pytest.param(r"br'\n'", rb"\n", id="raw"),
        pytest.param("b'ä'", "ä".encode(), id="a letter beyond ASCII"),
    ],
)
def test_escape_sequences_in_bytes_are_octets(text: str, value: bytes) -> None:
    assert parse(text) == Literal(value, 0)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("a || b && c", "(_||_ a (_&&_ b c))", id="and before or"),
        pytest.param("a && b || c", "(_||_ (_&&_ a b) c)", id="and before or, the other way round"),
        pytest.param("a == b && c != d", "(_&&_ (_==_ a b) (_!=_ c d))", id="relations before and"),
        pytest.param("a < b + c", "(_<_ a (_+_ b c))", id="sums before relations"),
        pytest.param("a in b + c", "(@in a (_+_ b c))", id="sums before in"),
        pytest.param("a - b * c", "(_-_ a (_*_ b c))", id="products before sums"),
        pytest.param("a / b - c % d", "(_-_ (_/_ a b) (_%_ c d))", id="all products before sums"),
        pytest.param("-a * -b", "(_*_ (-_ a) (-_ b))", id="signs before products"),
        pytest.param("-a.b(c)[d]", "(-_ (_[_] (a .b c) d))", id="members before signs"),
        pytest.param("!a.b == c", "(_==_ (!_ (a .b)) c)", id="members before not, not before relations"),
        pytest.param("(a || b) && c", "(_&&_ (_||_ a b) c)", id="brackets first"),
        pytest.param("-(a + b)", "(-_ (_+_ a b))", id="brackets before signs"),
        pytest.param("a - b - c", "(_-_ (_-_ a b) c)", id="sums from the left"),
        pytest.param("a / b * c % d", "(_%_ (_*_ (_/_ a b) c) d)", id="products from the left"),
        pytest.param("a < b <= c > d >= e", "(_>=_ (_>_ (_<=_ (_<_ a b) c) d) e)", id="relations from the left"),
        pytest.param("a == b in c", "(@in (_==_ a b) c)", id="in is a relation"),
        pytest.param("a || b || c", "(_||_ (_||_ a b) c)", id="or from the left"),
        pytest.param("a && b && c", "(_&&_ (_&&_ a b) c)", id="and from the left"),
        pytest.param("a ? b : c ? d : e", "(_?_:_ a b (_?_:_ c d e))", id="conditionals from the right"),
        pytest.param("a || b ? c && d : e < f", "(_?_:_ (_||_ a b) (_&&_ c d) (_<_ e f))", id="or before conditionals"),
        pytest.param("(a ? b : c) ? d : (e)", "(_?_:_ (_?_:_ a b c) d e)", id="a conditional as a condition"),
        pytest.param("a ? (b ? c : d) : e", "(_?_:_ a (_?_:_ b c d) e)", id="a conditional in a conditional"),
        pytest.param("a?b:c", "(_?_:_ a b c)", id="a conditional without space"),
    ],
)
def test_operators_have_the_precedence_of_the_language(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("!!a", "a", id="two cancel out"),
        pytest.param("!!!a", "(!_ a)", id="three are one"),
        pytest.param("- - -a", "(-_ a)", id="three are one, with space"),
        pytest.param("-// minus\n-a", "a", id="two cancel out, with a comment"),
        pytest.param("-(-a)", "(-_ (-_ a))", id="signs in brackets are separate"),
        pytest.param("-1", "-1", id="one belongs to a number"),
        pytest.param("- 1.5", "-1.5", id="one belongs to a number, with space"),
        pytest.param("--1", "1", id="two before a number cancel out"),
        pytest.param("---1", "(-_ 1)", id="three before a number are one"),
        pytest.param("!-1", "(!_ -1)", id="a number after not"),
        pytest.param("-a.b", "(-_ (a .b))", id="one before a member"),
        pytest.param("-1.b", "(-1 .b)", id="one before a member of a number"),
        pytest.param("a-1", "(_-_ a 1)", id="one after an operand is a subtraction"),
        pytest.param("a -1", "(_-_ a 1)", id="one after an operand, with space"),
        pytest.param("a - -1", "(_-_ a -1)", id="a subtraction of a negative number"),
        pytest.param("a--1", "(_-_ a -1)", id="a subtraction of a negative number, without space"),
        pytest.param("a---1", "(_-_ a 1)", id="a subtraction and two signs"),
        pytest.param("(a)-(1)", "(_-_ a 1)", id="one after a bracket"),
        pytest.param("[a]-[1]", "(_-_ [a] [1])", id="one after a list"),
    ],
)
def test_an_even_number_of_signs_has_no_effect(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("a.b.c", "((a .b) .c)", id="fields of fields"),
        pytest.param("a[b][c].d", "((_[_] (_[_] a b) c) .d)", id="items of items"),
        pytest.param("a.b(c, d + 1).e()", "((a .b c (_+_ d 1)) .e)", id="methods of results"),
        pytest.param("f(g(), [h])", "(f (g) [h])", id="functions of functions"),
        pytest.param(".a.b", "(a .b)", id="a name of the root"),
        pytest.param(".f(a)", "(f a)", id="a function of the root"),
        pytest.param("'a'.b", "('a' .b)", id="a field of a text"),
        pytest.param("1.b", "(1 .b)", id="a field of a number"),
        pytest.param("[].b", "([] .b)", id="a field of a list"),
        pytest.param("{}['a']", "(_[_] {} 'a')", id="an item of a map"),
        pytest.param("{'a': 1, b + c: [d]}", "{'a':1 (_+_ b c):[d]}", id="a map"),
        pytest.param("{a ? b : c: d}", "{(_?_:_ a b c):d}", id="a conditional as a key"),
        pytest.param(
            "trueish + nullable + inner",
            "(_+_ (_+_ trueish nullable) inner)",
            id="names that start with a reserved word",
        ),
        pytest.param("a.trueish.inner", "((a .trueish) .inner)", id="fields that start with a reserved word"),
        pytest.param("1in[1]", "(@in 1 [1])", id="in needs no space before it"),
        pytest.param("'a'in b", "(@in 'a' b)", id="in needs no space after a text"),
        pytest.param("_a1", "_a1", id="a name with an underscore and a digit"),
    ],
)
def test_members_are_parsed_from_the_left(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("007", 7, id="zeros in front"),
        pytest.param("0x1fE", 0x1FE, id="hexadecimal"),
        pytest.param("-0x10", -16, id="negative hexadecimal"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the largest integer"),
        pytest.param("-9223372036854775808", -(2**63), id="the smallest integer"),
        pytest.param("- 9223372036854775808", -(2**63), id="the smallest integer, with space"),
        pytest.param("1.5", 1.5, id="a point"),
        pytest.param(".5", 0.5, id="nothing before the point"),
        pytest.param("1e3", 1000.0, id="an exponent"),
        pytest.param("1.5E-3", 0.0015, id="a point and an exponent"),
        pytest.param(".5e+1", 5.0, id="nothing before the point, and an exponent"),
        pytest.param("true", True, id="true"),
        pytest.param("false", False, id="false"),
        pytest.param("null", None, id="null"),
        pytest.param("''", "", id="an empty text"),
        pytest.param('"a\'b"', "a'b", id="the other quote"),
        pytest.param("'a // b'", "a // b", id="slashes in a text"),
        pytest.param("'\t'", "\t", id="a tab"),
        pytest.param(r"'a\'b\\'", "a'b\\", id="escaped quotes and backslashes"),
        pytest.param(r"'\a\b\f\n\r\t\v\?\`\"'", '\a\b\f\n\r\t\v?`"', id="escaped characters"),
        pytest.param(r"'\x41\X4a\u00e9\U0001F600\101\377'", "AJé😀Aÿ", id="characters by their numbers"),
        pytest.param("''''''", "", id="an empty long text"),
        pytest.param("'''a'b''c\n\rd'''", "a'b''c\n\rd", id="quotes and lines in a long text"),
        pytest.param('"""a"b""c\\"\\""""', 'a"b""c""', id="escaped quotes at the end of a long text"),
        pytest.param("''''a'''", "'a", id="a quote at the start of a long text"),
        pytest.param(r"r'\d\'", "\\d\\", id="a raw text"),
        pytest.param(r'R"\"', "\\", id="a raw text that is a backslash"),
        pytest.param("r'''\\'\n'''", "\\'\n", id="a long raw text"),
        pytest.param("b'é'", "é".encode(), id="bytes"),
        pytest.param('B"a"', b"a", id="bytes in other quotes"),
        pytest.param("b'''a\n'''", b"a\n", id="long bytes"),
        pytest.param(r"br'\n'", b"\\n", id="raw bytes"),
        pytest.param(r"bR'''\n'''", b"\\n", id="long raw bytes"),
    ],
)
def test_a_literal_has_its_value(text: str, value: object) -> None:
    node = parse(text)
    assert node == Literal(value, 0)
    assert isinstance(node, Literal)
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param(r"r'\' + 'b'", "(_+_ '\\\\' 'b')", id="a raw text ends at its first quote"),
        pytest.param(r"'\'' + '\''", '(_+_ "\'" "\'")', id="an escaped quote does not end a text"),
        pytest.param("'''a''' + '''b'''", "(_+_ 'a' 'b')", id="a long text ends at its first end"),
        pytest.param("a // + b\n + c", "(_+_ a c)", id="a comment ends with its line"),
        pytest.param("// a\n// b\nc//", "c", id="comments around"),
        pytest.param("a /b", "(_/_ a b)", id="a single slash"),
        pytest.param("// a \r + b\nc", "c", id="a comment goes beyond a carriage return"),
        pytest.param("\t\n\f\r a \n.\f b\r\n(\tc )", "(a .b c)", id="space anywhere"),
    ],
)
def test_a_token_has_the_right_end(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("  a", 2, id="a name"),
        pytest.param(" .a", 1, id="a name of the root, at its dot"),
        pytest.param(" 'a'", 1, id="a literal"),
        pytest.param("a // b\n  + c", 9, id="an operator, at its sign"),
        pytest.param("a in b", 2, id="an operator that is a word"),
        pytest.param("(a) || (b)", 4, id="an operator between brackets"),
        pytest.param("a || b || c", 7, id="several operators, at the last"),
        pytest.param(" !! ! a", 1, id="several signs, at the first"),
        pytest.param("(a) ? b : c", 4, id="a conditional, at its question mark"),
        pytest.param("(a) . b", 4, id="a field, at its dot"),
        pytest.param("(a) . b (c)", 8, id="a method, at its bracket"),
        pytest.param(" f (c)", 3, id="a function, at its bracket"),
        pytest.param("(a) [b]", 4, id="an item, at its bracket"),
        pytest.param(" [a]", 1, id="a list"),
        pytest.param(" {a: b}", 1, id="a map"),
        pytest.param(" ( a )", 3, id="an expression in brackets, without the brackets"),
    ],
)
def test_a_node_has_the_position_of_error_messages(text: str, at: int) -> None:
    assert parse(text).at == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param(" // a", 5, id="only a comment"),
        pytest.param("a +", 3, id="an end after an operator"),
        pytest.param("a + \n", 5, id="an end after an operator and space"),
        pytest.param("f(a", 3, id="an open bracket"),
        pytest.param("a ? b", 5, id="half a conditional"),
        pytest.param("a ? b : ", 8, id="a conditional without its end"),
        pytest.param("a b", 2, id="two names"),
        pytest.param("a, b", 1, id="two expressions"),
        pytest.param("a)", 1, id="a bracket that is not open"),
        pytest.param("()", 1, id="empty brackets"),
        pytest.param("a = b", 2, id="an assignment"),
        pytest.param("a & b", 2, id="half of and"),
        pytest.param("a === b", 4, id="too much of equals"),
        pytest.param("a not in b", 2, id="not in"),
        pytest.param("a inb", 2, id="in without space after it"),
        pytest.param("in", 0, id="in as a name"),
        pytest.param("a.in", 2, id="in as a field"),
        pytest.param("a.null", 2, id="null as a field"),
        pytest.param("a.true", 2, id="true as a field"),
        pytest.param(".false", 1, id="false as a name of the root"),
        pytest.param("a..b", 2, id="two dots"),
        pytest.param("a.1", 1, id="a number as a field"),
        pytest.param("1.", 2, id="nothing behind the point"),
        pytest.param("1.5.5", 3, id="two points"),
        pytest.param("1_000", 1, id="an underscore in a number"),
        pytest.param("0XFF", 1, id="a large x"),
        pytest.param("0x", 1, id="no hexadecimal digits"),
        pytest.param("1e", 1, id="no exponent"),
        pytest.param("-!a", 1, id="minus before not"),
        pytest.param("! - a", 2, id="not before minus"),
        pytest.param("f(a,)", 4, id="a comma at the end of arguments"),
        pytest.param("{a}", 2, id="a map without values"),
        pytest.param("a[]", 2, id="no index"),
        pytest.param("a[b, c]", 3, id="two indexes"),
        pytest.param("`a`", 0, id="a quoted name"),
        pytest.param("é", 0, id="a letter beyond ASCII"),
        pytest.param("a\N{NO-BREAK SPACE}b", 1, id="space beyond ASCII"),
        pytest.param("'a", 0, id="a text without its end"),
        pytest.param(r"a == 'b\'", 5, id="a text with an escaped end"),
        pytest.param("'a\nb'", 0, id="a line break in a text"),
        pytest.param("'a\rb'", 0, id="a carriage return in a text"),
        pytest.param("r'a\n'", 1, id="a line break in a raw text"),
        pytest.param("'''a''", 2, id="a long text without its end"),
        pytest.param("rb'a'", 2, id="raw and bytes in the wrong order"),
        pytest.param("'a' 'b'", 4, id="two texts"),
    ],
)
def test_a_syntax_error_has_its_position(text: str, at: int) -> None:
    """A real API server (1.36.3) reports its first error at the same position.

    Exceptions are `! - a`, where it points behind the minus, and the accepted texts `[a,]`, `[,]`, `{a: b,}`, `a.?b`.
    """
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text)
    assert (caught.value.text, caught.value.at) == ("Syntax error: the expression cannot be read here", at)


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        pytest.param("1 + 9223372036854775808", "invalid int literal", 4, id="an integer that is too large"),
        pytest.param("- 9223372036854775809", "invalid int literal", 0, id="an integer that is too small"),
        pytest.param("--9223372036854775808", "invalid int literal", 2, id="an integer without a sign"),
        pytest.param("0x8000000000000000", "invalid int literal", 0, id="a hexadecimal one that is too large"),
        pytest.param("9" * 5000, "invalid int literal", 0, id="more digits than Python reads"),
        pytest.param("1e400", "invalid double literal", 0, id="a double that is too large"),
        pytest.param(r"'\q'", "Syntax error: unable to unescape string", 0, id="an unknown escape"),
        pytest.param(r"a == '\x4'", "Syntax error: unable to unescape string", 5, id="a short hexadecimal number"),
        pytest.param(r"'\400'", "Syntax error: unable to unescape string", 0, id="an octal number that is too large"),
        pytest.param(r"'\12'", "Syntax error: unable to unescape string", 0, id="a short octal number"),
        pytest.param(r"'\ud83d'", "invalid unicode code point", 0, id="half a surrogate pair"),
        pytest.param(r"'\U00110000'", "invalid unicode code point", 0, id="a number beyond Unicode"),
        pytest.param("18446744073709551616u", "invalid uint literal", 0, id="an unsigned number of 65 bits"),
        pytest.param(r"b'\u00e4'", "unable to unescape string", 0, id="a number of Unicode in bytes"),
        pytest.param("a.`b`", "unsupported syntax: '`'", 2, id="a quoted field"),
    ],
)
def test_an_invalid_literal_is_rejected(text: str, message: str, at: int) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text)
    assert (caught.value.text, caught.value.at) == (message, at)


@pytest.mark.parametrize("name", sorted(RESERVED - {"true", "false", "null", "in"}))
def test_a_reserved_word_is_allowed_only_as_a_field(name: str) -> None:
    assert shown(parse(f"a.{name}")) == f"(a .{name})"
    assert shown(parse(f"a.{name}(b)")) == f"(a .{name} b)"
    for text, at in ((name, 0), (f" .{name}", 1), (f"a + {name}(b)", 4), (f"a.all({name}, true)", 6)):
        with pytest.raises(RuleSyntaxError) as caught:
            parse(text)
        assert (caught.value.text, caught.value.at) == (f"reserved identifier: {name}", at)
    assert shown(parse(f"{name}s")) == f"{name}s"


@pytest.mark.parametrize(
    ("start", "end", "most"),
    [
        pytest.param("(", ")", 249, id="brackets"),
        pytest.param("f(", ")", 249, id="functions"),
        pytest.param("a.f(b, ", ")", 249, id="methods"),
        pytest.param("[", "]", 249, id="lists"),
        pytest.param("{'a': ", "}", 249, id="maps"),
        pytest.param("{", ": 1}", 249, id="keys"),
        pytest.param("a[", "]", 249, id="indexes"),
        pytest.param("a ? b : ", "", 249, id="conditionals"),
    ],
)
def test_the_depth_of_nested_expressions_is_limited(start: str, end: str, most: int) -> None:
    """The limit is that of a real API server (1.36.3): 250, including the innermost expression."""
    parse(start * most + "a" + end * most)
    with pytest.raises(RecursionError):
        parse(start * (most + 1) + "a" + end * (most + 1))


@pytest.mark.parametrize(
    "text", ["a" + ".b" * 200, "a" + "[b]" * 200, "a" + " + b" * 200, "a" + " && b" * 200, "!" * 999 + "a"]
)
def test_a_chain_of_operators_is_not_nested(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    "text", ["(" * 20_000, "[" * 20_000, "-" * 20_000, "'" + "\\" * 20_000, "r'" + "\\'" * 5000, "a." * 10_000]
)
def test_an_invalid_text_is_rejected_quickly(text: str) -> None:
    """The parser does not recurse, and the lexer does not backtrack."""
    with pytest.raises(RuleSyntaxError):
        parse(text)


@given(text=st.text(alphabet="ab1.'\"\\()[]{}:,?!-+*/<=>&| \nrxinu", max_size=16))
def test_space_at_start_and_end_has_no_effect(text: str) -> None:
    def read(whole: str) -> str:
        try:
            return shown(parse(whole))
        except RuleSyntaxError as error:
            return re.sub(r"\d+", "", str(error))

    assert read(f"\n {text}\n") == read(text)


def test_an_expression_is_parsed_once() -> None:
    """A tree is immutable, so that rules of several definitions can share it."""
    assert parse("self.size > oldSelf.size") is parse("self.size > oldSelf.size")
