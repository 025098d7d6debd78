"""What the request-response services share: exchange, rate limits, serving."""
