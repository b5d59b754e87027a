"""A judge that takes all the time or memory there is over pages that ask for it."""

from __future__ import annotations

import os
from pathlib import Path

from focused.scrapy_addon.session import Guide
from focused.topic import Topic
from focused.web.page import Judgement, Page
from tests.support.keyword_guide import WhaleJudge, WhaleScorer

MARK = "FOCUSED_TEST_MARK"
"""The variable that names a file which is made when such a page is judged."""


class ExhaustibleJudge(WhaleJudge):
    def judge(self, page: Page) -> Judgement:
        if page.title in ("endless", "huge") and MARK in os.environ:
            Path(os.environ[MARK]).touch()
        while page.title == "endless":
            pass
        if page.title == "huge":
            bytearray(10**13)
        return super().judge(page)


def guide(topic: Topic) -> Guide:
    return Guide(ExhaustibleJudge(), WhaleScorer(), frozenset({"http://a.test/trained"}))
