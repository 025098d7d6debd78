"""13/WAKU2-STORE, version 3 and the legacy one: client, server, and the archive's intake."""
