"""``/causerie/blob/1``: sealed chunks of files between devices, and nodes that keep them."""
