"""robots.txt (RFC 9309) and robots directives of single pages."""
