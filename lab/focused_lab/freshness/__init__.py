"""Simulate revisit policies over change histories, and measure how fresh the collection stays."""
