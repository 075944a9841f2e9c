"""What a docstring must say: ruff sees that there is one and how it looks, this sees what is left out."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "poolembed").rglob("*.py"))}
CLASSES = {
    node.name: node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
}
PROTOCOLS = [
    node for node in CLASSES.values() if any(ast.unparse(base).startswith("Protocol") for base in node.bases)
]
OPENERS = ("Return", "Yield", "Whether")


def public_functions(tree):
    """Functions and methods whose names, and whose classes' names, have no leading underscore."""
    for node in tree.body:
        if getattr(node, "name", "_").startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from (method for method in public_functions(node) if not is_inherited(node, method.name))
        elif not is_command(node) and not is_overload(node):
            yield node


def methods(owner):
    return {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}


def is_inherited(owner, name):
    """Whether a base class of the package, or a protocol that the class fulfils, describes the method."""
    named = [ast.unparse(base).partition("[")[0] for base in owner.bases]
    bases = [CLASSES[base] for base in named if base in CLASSES]
    fulfilled = [
        protocol for protocol in PROTOCOLS if protocol is not owner and methods(protocol) <= methods(owner)
    ]
    return any(name in methods(base) or is_inherited(base, name) for base in [*bases, *fulfilled])


def is_command(function):
    """Whether click runs it: its docstring is then the text of its --help."""
    return any(ast.unparse(decorator).startswith("click.") for decorator in function.decorator_list)


def is_overload(function):
    """Whether it is one of the signatures of a function, which describes them all."""
    return any(ast.unparse(decorator) == "overload" for decorator in function.decorator_list)


def parameters(function):
    listed = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in listed if argument.arg not in ("self", "cls")]


def returns_something(function):
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    annotation = ast.unparse(function.returns) if function.returns else "None"
    return annotation not in ("None", "NoReturn", "Self") and not decorators & {"property", "overload"}


def raised(function):
    """Names of exceptions raised in the function's own lines; a lower-case name is a helper's."""
    calls = [node.exc for node in ast.walk(function) if isinstance(node, ast.Raise)]
    names = {ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)}
    return {name for name in names if name[0].isupper() and name.endswith("Error")}


def gaps(function):
    """What the docstring of one function leaves out; a sentence may say it instead of a section."""
    docstring = ast.get_docstring(function) or ""
    unnamed = [name for name in parameters(function) if f"`{name}`" not in docstring]
    if len(parameters(function)) > 1 and unnamed and "Args" not in docstring:
        yield f"says nothing of {', '.join(unnamed)}"
    says_what_returns = docstring.startswith(OPENERS) or "Returns:" in docstring or "Yields:" in docstring
    if "Args:" in docstring and returns_something(function) and not says_what_returns:
        yield "does not say what it returns"
    for name in sorted(raised(function)):
        if name not in docstring:
            yield f"raises {name} and does not say when"


@pytest.mark.parametrize("path", TREES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_public_function_says_what_it_takes_returns_and_raises(path):
    found = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name} {gap}"
        for function in public_functions(TREES[path])
        for gap in gaps(function)
    ]
    assert found == []


@pytest.mark.parametrize("room", ["cli", "io", "pipeline", "poolers", "runner"])
def test_a_room_says_what_goes_in_what_comes_out_and_what_never_happens(room):
    docstring = ast.get_docstring(ast.parse((ROOT / "poolembed" / room / "__init__.py").read_text("utf-8")))
    assert docstring is not None
    assert [word for word in ("In:", "Out:", "Never:") if word not in docstring] == []


BAD = '''
def undocumented(first, second) -> int:
    """Add."""

def silent(first) -> int:
    """Add.

    Args:
        first: a number.
    """

def loud(first) -> None:
    """Fail.

    Raises:
        OtherError: never.
    """
    raise InputError("no")
'''


def test_a_gap_is_found():
    found = [
        f"{function.name} {gap}" for function in public_functions(ast.parse(BAD)) for gap in gaps(function)
    ]
    assert found == [
        "undocumented says nothing of first, second",
        "silent does not say what it returns",
        "loud raises InputError and does not say when",
    ]
