"""Sans-I/O conversations: envelope, membership, protocol and content combined in one session."""
