"""The keys of ``[deep_web]`` in a topic file."""

from __future__ import annotations

from focused.topic.topic_key import COUNT, HOSTS, TopicKey

DEEP_WEB_KEYS = (
    TopicKey(
        "hosts",
        HOSTS,
        "[]",
        "Hosts, with their subdomains, whose search forms the crawl may use. Only forms that send "
        "one text by GET are used. Without hosts no form is.",
    ),
    TopicKey("queries", COUNT, "100", "Queries that one form is sent at most."),
    TopicKey("result_pages", COUNT, "5", "Pages of results that are fetched for a query at most."),
    TopicKey(
        "stop_after",
        COUNT,
        "10",
        "The crawl leaves a form after this many queries in a row without a new relevant page.",
    ),
)
