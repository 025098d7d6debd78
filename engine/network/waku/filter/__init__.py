"""12/WAKU2-FILTER: client, server, and the queue of pushes."""
