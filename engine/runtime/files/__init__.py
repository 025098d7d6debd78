"""Files that travel apart from their messages: kept, fetched, offered, opened."""
