"""The syntax colours of JSON: which tokens get them, and that the characters stay the same."""

from followup_mockserver.dashboard.texts import coloured


def test_tokens_have_classes() -> None:
    assert coloured('{"a": "b: \\"c\\"", "n": -1.5e3, "t": [true, null]}') == (
        '{<span class="json-key">&#34;a&#34;</span>: <span class="json-string">&#34;b: \\&#34;c\\&#34;&#34;</span>, '
        '<span class="json-key">&#34;n&#34;</span>: <span class="json-number">-1.5e3</span>, '
        '<span class="json-key">&#34;t&#34;</span>: [<span class="json-literal">true</span>, '
        '<span class="json-literal">null</span>]}'
    )


def test_markup_is_escaped_and_other_texts_have_no_colours() -> None:
    assert coloured('["<b>"]') == '[<span class="json-string">&#34;&lt;b&gt;&#34;</span>]'
    assert coloured("<b>1</b> true") == "&lt;b&gt;1&lt;/b&gt; true"
    assert coloured('{"a": 1, "b": "unfin…') == (
        '{<span class="json-key">&#34;a&#34;</span>: <span class="json-number">1</span>, '
        '<span class="json-key">&#34;b&#34;</span>: &#34;unfin…'
    )
