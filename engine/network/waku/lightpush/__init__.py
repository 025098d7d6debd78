"""19/WAKU2-LIGHTPUSH, version 3 and the legacy one: client and server."""
