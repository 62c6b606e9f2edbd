"""Problems of an expression, in the order and with the precedence of a real API server.

Type errors hide those that are found after the check of the types, and both hide those of the preparation of the
program, such as a literal that cannot be converted.
"""

from dataclasses import dataclass, field

from ocf_server.cel.literals import RuleSyntaxError

__all__ = ["Issues", "MacroError"]


class MacroError(RuleSyntaxError):
    """The arguments of a macro are invalid; as a syntax error, it hides all type errors."""


@dataclass(frozen=True, slots=True)
class Issues:
    """The problems of an expression.

    Args:
        literals: Problems of literals, found if the types have none.
        program: Problems of the program, found if the expression has no others.
    """

    types: list[RuleSyntaxError] = field(default_factory=list)
    literals: list[RuleSyntaxError] = field(default_factory=list)
    program: list[str] = field(default_factory=list)

    def compile_problems(self) -> list[RuleSyntaxError]:
        """Return the problems that the API server reports for the compilation, by their position."""
        return sorted(self.types or self.literals, key=lambda problem: problem.at)
