"""What the request-response services have in common: exchange, rate limits, serving."""
