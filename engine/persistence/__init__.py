"""The profile on disk: SQLCipher through sqlite-utils, its key, its lock, its migrations.

The order of a start: ``open_profile_directory``, ``ProfileLock``, ``obtain_database_key``, then
``SqliteProfileStore.open`` on a ``StorageThread``, which alone uses and at last closes the store.
A profile from before the first schema is kept aside in between (``earlier_profile``).
"""
