"""Scripts that lead the readers of a page to another page at once."""

import pytest

from focused.crawl.spam_filter import MAX_SCRIPT_BYTES, script_redirect

SHOP = "http://shop.test/buy?now=1"


@pytest.mark.parametrize(
    "code",
    [
        f'location = "{SHOP}"',
        f"window.location='{SHOP}';",
        f'window.top.location.href = "{SHOP}";',
        f'document.location.replace("{SHOP}")',
        f"var x = 1; location.assign('{SHOP}')",
    ],
)
def test_a_short_script_that_sets_the_location_leads_there(code):
    html = f"<html><head><script type=text/javascript>{code}</script></head>a text"
    assert script_redirect(html.encode()) == SHOP


@pytest.mark.parametrize(
    "html",
    [
        "<p>our location = 'http://shop.test/'",
        f"<script>if (top != self) top.location = '{SHOP}'</script>",
        f"<script>function go() {{ location = '{SHOP}' }}</script>",
        f"<script>button.onclick = go; location = '{SHOP}'</script>",
        "<script>location = '/en/' + page</script>",
        f"<script>{'x();' * MAX_SCRIPT_BYTES}location = '{SHOP}'</script>",
        f"<script>mylocation = '{SHOP}'</script>",
        "<script>location",
        "",
    ],
)
def test_text_conditions_functions_and_long_scripts_lead_nowhere(html):
    assert script_redirect(html.encode()) is None
