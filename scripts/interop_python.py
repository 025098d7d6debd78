"""py-libp2p, which tests and benchmarks talk to, in ``build/interop-python``.

``tests/interop/py_libp2p/requirements.txt`` pins all of it with hashes.  All of it comes as wheels
but two packages of one Python module each, which the locked setuptools (``build.txt``) packs; so no
compiler and no library of the system is needed.
"""

from scripts.python_environment import ROOT, PythonEnvironment

LOCKED = ROOT / "tests" / "interop" / "py_libp2p"
FILES = ("build.txt", "requirements.txt")
NOT_AS_WHEELS = "varint,python-baseconv"
ENVIRONMENT = PythonEnvironment(
    place=ROOT / "build" / "interop-python",
    locks=tuple(LOCKED / name for name in FILES),
    options=("--no-build-isolation", "--only-binary", ":all:", "--no-binary", NOT_AS_WHEELS),
)
