"""The profile on disk: SQLCipher through sqlite-utils, its key, its lock, its migrations."""
