"""The add-on's spiders; the crawl behind the scheduler decides what they fetch.

``scrapy crawl topic -a topic=FILE`` crawls a topic; ``scrapy crawl samples`` fetches a directory's
pages for training.
"""
