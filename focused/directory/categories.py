"""Names of categories: parts separated by ``/``, from the root down."""


def is_in_category(category: str, prefix: str) -> bool:
    """Whether ``category`` is ``prefix`` or below it (whole path parts only)."""
    prefix = prefix.strip("/")
    return category == prefix or category.startswith(prefix + "/")
