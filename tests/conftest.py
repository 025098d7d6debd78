"""What holds for every test: an example has no deadline, because a busy machine is not a defect.

How long something takes is measured in benchmarks/, on purpose and with the load beside it.
"""

from hypothesis import settings

settings.register_profile("unhurried", settings(), deadline=None)
settings.load_profile("unhurried")
