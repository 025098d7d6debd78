"""Everything behind the window: protocols, encryption, network and disk, without Qt."""
