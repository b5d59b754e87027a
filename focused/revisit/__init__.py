"""When to visit a fetched page again: revisit policies, due times, budget."""
