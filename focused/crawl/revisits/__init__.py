"""Revisits: fetch the pages of a continuous crawl again and detect what changed.

1. ``collection``: a page enters the collection after its first fetch. Its weight and the schedule
   (:mod:`focused.revisit`) tell when it is due; a due page is a link of the frontier.
2. ``continuous``: the budget decides when the next download may begin, and how many due pages are
   queued.
3. ``revisits``: the request is conditional (``validators``). The response is compared with the
   stored version (``versions``, ``change_detection``); it may mean that the page moved or is gone
   (``page_fate``). Visit, state and next due time are stored.
4. ``announcements``: sitemaps and feeds make pages due earlier or later, as far as they can be
   believed.

Each visit finds a page changed, unchanged, or tells nothing; only the first two teach the schedule.
"""
