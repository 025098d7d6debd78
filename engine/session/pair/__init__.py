"""One-to-one conversations: the session, the message order, the wire format and consent to talk."""
