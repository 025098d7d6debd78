"""How fast, how completely and at what cost messages reached people, from the silver tables."""
