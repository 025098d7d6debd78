"""Sans-I/O composition of a conversation: envelope, membership, SDS and content in one machine."""
