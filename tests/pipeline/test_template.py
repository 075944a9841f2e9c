"""Texts made of several columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.errors import ConfigError
from poolembed.pipeline.template import Template


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_a_filled_template_is_what_format_gives(rows):
    texts = {"title": [title for title, _ in rows], "text": [text for _, text in rows]}
    template = Template.parse("<{title}> {{}} {text}, {title}")
    expected = [f"<{title}> {{}} {text}, {title}" for title, text in rows]
    assert template.fill(texts) == expected


def test_line_ends_and_tabulators_may_be_written_as_a_shell_hands_them_over():
    assert Template.parse(r"{a}\n\t{b}").fill({"a": ["x"], "b": [r"\n"]}) == ["x\n\t\\n"]
    assert Template.parse("{a}\n{b}").fill({"a": ["x"], "b": ["y"]}) == ["x\ny"]


def test_every_column_is_asked_for_once_and_by_its_own_name_alone():
    roles = Template.parse("{b} {a} {b}").roles
    assert [(role.name, role.candidates, role.is_column) for role in roles] == [
        ("b", ("b",), True),
        ("a", ("a",), True),
    ]


@pytest.mark.parametrize("text", ["", "no column", "{a", "a}", "{}", "{a!r}", "{a:>3}"])
def test_what_is_no_template_is_refused(text):
    with pytest.raises(ConfigError, match="--template"):
        Template.parse(text)
