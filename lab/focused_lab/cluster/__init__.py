"""Simulate crawls of many partitions, and measure what the partitioning costs."""
