"""Templates: Jinja2 in a sandbox.

Templates see the facts and a few functions, nothing else, and an unknown name is an error.

Names are data: a feature called ``{{ 7 * 7 }}`` appears under that name. The output is plain text:
whoever puts it into a page must escape it there. A sentence may take several lines of a template;
lines are joined, and an empty line begins a paragraph.
"""

import re
import traceback
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import (
    FileSystemLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    UndefinedError,
    meta,
)
from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateRuntimeError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from graphgauge.core import BadFile, BadSetting, GraphgaugeError, UnknownName, lookup
from graphgauge.narrative.facts import Facts
from graphgauge.narrative.language import Language

_TEMPLATE_ENDING = ".txt"
#: the filters there are: none that makes a long text of a short one
_ALLOWED_FILTERS = (
    "capitalize default first join last length list lower map reject rejectattr reverse select "
    "selectattr sort trim unique upper"
).split()


class _TemplateSandbox(ImmutableSandboxedEnvironment):
    """A sandbox without operators that can build huge values."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def call_binop(self, context: object, operator: str, left: Any, right: Any) -> Any:
        """Raise SecurityError for the operator."""
        raise SecurityError(f"templates cannot use the operator {operator}")


def _build_sandbox(folders: tuple[Path, ...]) -> _TemplateSandbox:
    """Build the environment that runs the templates of these folders."""
    environment = _TemplateSandbox(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FileSystemLoader([str(folder) for folder in folders]),
    )
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in _ALLOWED_FILTERS}
    return environment


@lru_cache(maxsize=64)
def _compile_template(source: str, folders: tuple[Path, ...]) -> tuple[Template, frozenset[str]]:
    """Compile a template; return it with the names that it asks for."""
    environment = _build_sandbox(folders)
    return environment.from_string(source), frozenset(
        meta.find_undeclared_variables(environment.parse(source))
    )


def _template_names(language: Language) -> list[str]:
    """Return the names of a language's templates."""
    return sorted(
        {path.stem for folder in language.folders for path in folder.glob(f"*{_TEMPLATE_ENDING}")}
    )


def read_template_source(template: str | Path, language: Language) -> tuple[str, str]:
    """Return the text of a template, and what errors call it.

    ``template`` is a Path, the name of a shipped template, or the text itself.
    """
    if isinstance(template, Path):
        try:
            return template.read_text(encoding="utf-8"), str(template)
        except (OSError, ValueError) as error:
            raise BadFile(f"the template {template} cannot be read: {error}.") from error
    if not isinstance(template, str):
        raise BadSetting(
            f"template must be a name, a text or a Path, but is {type(template).__name__}."
        )
    if re.search(r"[{}\n]", template):
        return template, "the template"
    lookup(
        dict.fromkeys(_template_names(language)),
        template,
        f"template in the language {language.code!r}",
    )
    path = next(
        folder / (template + _TEMPLATE_ENDING)
        for folder in language.folders
        if (folder / (template + _TEMPLATE_ENDING)).is_file()
    )
    return path.read_text(encoding="utf-8"), path.name


def render_template(template: str | Path, language: Language, context: Facts) -> str:
    """Return the text that a template makes of ``context``.

    Args:
        template: A Path, the name of a template of the language ("expert"), or the text of a
            template. A text has a brace or a line break; anything else is taken as a name.
        language: The language whose folders hold the templates.
        context: What the template can use, by name; see `TemplateContext.context`.

    Returns:
        Plain text; an empty line separates paragraphs.

    Raises:
        BadFile: The file of the template cannot be read.
        BadSetting: The text is not a template, or it fails.
        UnknownName: There is no template of that name, or it asks for a name that is not in
            ``context``.
    """
    source, called = read_template_source(template, language)
    try:
        compiled_template, wanted = _compile_template(source, language.folders)
        unknown = wanted - set(context)
        if unknown:
            _raise_unknown_name(called, ", ".join(map(repr, sorted(unknown))), context)
        return _join_paragraphs(compiled_template.render(context))
    except GraphgaugeError:
        raise
    except TemplateSyntaxError as error:
        raise BadSetting(
            f"{called} is no template, line {error.lineno}: {error.message}."
        ) from error
    except UndefinedError as error:
        _raise_unknown_name(
            called, f"{error.message} (line {_template_line(error)})", context, error
        )
    except (
        TemplateError,
        TemplateRuntimeError,
        TemplateNotFound,
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
    ) as error:
        raise BadSetting(
            f"{called} failed in line {_template_line(error)}: {type(error).__name__}: {error}."
        ) from error


def _raise_unknown_name(
    called: str, what: str, context: Facts, cause: Exception | None = None
) -> NoReturn:
    """Raise UnknownName with the names that exist."""
    raise UnknownName(
        f"{called} asks for what is not there: {what}. Known: {', '.join(_known_names(context))}."
    ) from cause


def _known_names(context: Facts) -> list[str]:
    """Return the dotted names that a template can ask for."""
    names = []
    for name, value in sorted(context.items()):
        names += (
            [f"{name}.{part}" for part in value]
            if isinstance(value, Mapping)
            else [f"{name}()" if callable(value) else name]
        )
    return names


def _template_line(error: BaseException) -> int:
    """Return the line of the template that raised; Jinja puts it into the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [
        frame.lineno or 0
        for frame in frames
        if frame.filename == "<template>" or frame.filename.endswith(_TEMPLATE_ENDING)
    ]
    return lines[-1] if lines else 0


def _join_paragraphs(text: str) -> str:
    r"""Join lines to paragraphs, with one empty line between paragraphs.

    >>> _join_paragraphs("One.\n  Two.\n\n\nThree.\n")
    'One. Two.\n\nThree.'
    """
    joined = (re.sub(r"[ \t\n]+", " ", part).strip(" ") for part in re.split(r"\n[ \t]*\n", text))
    return "\n\n".join(part for part in joined if part)
