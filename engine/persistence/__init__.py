"""The profile on disk: SQLCipher, its key, its lock, its migrations.

A start runs ``open_profile_directory``, ``ProfileLock``, ``obtain_database_key``, then
``SqliteProfileStore.open`` on a ``StorageThread``, the only thread that uses and finally closes the
store. In between, a profile from before the first schema is kept aside (``earlier_profile``).
"""
