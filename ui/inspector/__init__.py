"""The panel that shows what is known of one message (Ctrl+I)."""
