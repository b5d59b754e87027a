"""Crawls without a network: the live crawl's own crank over a recorded web.

A :class:`Network` answers what a recorded web holds, the simulator turns the
crank and moves the clock. The same arguments give the same crawl. Labels do
not come in here.
"""
