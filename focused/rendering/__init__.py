"""Pages that show their content only after their scripts have run.

:mod:`~focused.rendering.decision` reads from a response whether its page may need JavaScript,
learns by host and URL template whether rendering brings text or links, and decides by expected gain
and cost. A :class:`~focused.rendering.chromium.ChromiumRenderer` runs the scripts in a browser that
has no network: whatever they request is refused by :mod:`~focused.rendering.subrequests`, or
fetched by the crawl itself.
"""
