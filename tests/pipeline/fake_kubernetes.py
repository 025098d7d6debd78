"""A Kubernetes API server as far as Spark's driver asks it: pods are processes of this machine.

Objects are kept as they were sent.  An executor's pod is started as its container would be, by the
image's own entry point with the pod's environment; who watches pods hears what becomes of them.
Labels select what is listed and deleted, as in the real one.
"""

import json
import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
POD_IP: Final = "127.0.0.3"
_LOOK_AGAIN_S: Final = 0.5
_MOST_BYTES: Final = 1_000_000


class FakeCluster:
    def __init__(self, entrypoint: Path, environment: Mapping[str, str], place: Path) -> None:
        self._entrypoint = entrypoint
        self._environment = dict(environment)
        self._place = place
        self._lock = threading.RLock()
        self._version = 0
        self._objects: dict[tuple[str, str], Object] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._watchers: list[SimpleQueue[Object]] = []
        self.executors: list[Object] = []
        """Every pod that the driver asked for, as it asked."""
        self.requests: list[str] = []

    # --- objects ----------------------------------------------------------------------------

    def create(self, kind: str, made: Object) -> Object:
        metadata = made["metadata"]
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", "2026-11-27T00:00:00Z")
        with self._lock:
            self._keep(kind, made)
            if kind == "pods":
                self.executors.append(made)
                self._start(made)
        return made

    def put(self, kind: str, made: Object) -> None:
        """What was there before the driver came."""
        with self._lock:
            self._keep(kind, made)

    def get(self, kind: str, name: str) -> Object | None:
        return self._objects.get((kind, name))

    def listed(self, kind: str, selector: str) -> Object:
        with self._lock:
            items = [o for (of, _), o in self._objects.items() if of == kind and _fits(o, selector)]
            metadata = {"resourceVersion": str(self._version)}
            return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}

    def delete(self, kind: str, name: str) -> None:
        with self._lock:
            gone = self._objects.pop((kind, name), None)
            if gone is None:
                return
            if process := self._running.pop(name, None):
                _kill(process)
            self._version += 1
            if kind == "pods":
                self._tell("DELETED", gone)

    def label(self, kind: str, name: str, patch: Object) -> Object | None:
        with self._lock:
            found = self._objects.get((kind, name))
            if found is not None:
                found["metadata"].setdefault("labels", {}).update(
                    patch.get("metadata", {}).get("labels", {})
                )
                self._keep(kind, found)
            return found

    def _keep(self, kind: str, made: Object) -> None:
        self._version += 1
        made["metadata"]["resourceVersion"] = str(self._version)
        is_new = (kind, made["metadata"]["name"]) not in self._objects
        self._objects[kind, made["metadata"]["name"]] = made
        if kind == "pods":
            self._tell("ADDED" if is_new else "MODIFIED", made)

    # --- pods as processes ------------------------------------------------------------------

    def _start(self, pod: Object) -> None:
        (container,) = pod["spec"]["containers"]
        name = pod["metadata"]["name"]
        fields = {"status.podIP": POD_IP, "metadata.name": name}
        told = {entry["name"]: _value(entry, fields) for entry in container["env"]}
        with (self._place / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", self._entrypoint, *container["args"]],
                env={**told, **self._environment}, cwd=self._place, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._running[name] = process
        self._phase(pod, "Running")
        threading.Thread(target=self._await, args=(pod, process), daemon=True).start()

    def _await(self, pod: Object, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        with self._lock:
            if self._running.pop(pod["metadata"]["name"], None) is not None:
                self._phase(pod, "Failed" if code else "Succeeded", code)

    def _phase(self, pod: Object, phase: str, code: int | None = None) -> None:
        (container,) = pod["spec"]["containers"]
        ended = {"terminated": {"exitCode": code}} if code is not None else {"running": {}}
        status = {"name": container["name"], "ready": code is None, "restartCount": 0}
        pod["status"] = {
            "phase": phase, "podIP": POD_IP, "containerStatuses": [{**status, "state": ended}],
        }  # fmt: skip
        self._keep("pods", pod)

    def kill_one(self) -> str:
        """As if its node had died; which one."""
        with self._lock:
            name, process = next(iter(self._running.items()))
        _kill(process)
        return name

    def end(self) -> None:
        with self._lock:
            running, self._running = list(self._running.values()), {}
        for process in running:
            _kill(process)

    # --- who watches ------------------------------------------------------------------------

    @contextmanager
    def watching(self) -> Iterator[SimpleQueue[Object]]:
        queue: SimpleQueue[Object] = SimpleQueue()
        with self._lock:
            self._watchers.append(queue)
        try:
            yield queue
        finally:
            with self._lock:
                self._watchers.remove(queue)

    def _tell(self, what: str, about: Object) -> None:
        for queue in self._watchers:
            queue.put({"type": what, "object": json.loads(json.dumps(about))})


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # It ended by itself.


def _value(entry: Object, fields: Mapping[str, str]) -> str:
    if "valueFrom" in entry:
        return fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
    return str(entry.get("value", ""))


def _fits(found: Object, selector: str) -> bool:
    labels = found["metadata"].get("labels", {})
    for term in filter(None, selector.split(",")):
        if term.startswith("!"):
            if term[1:] in labels:
                return False
        elif " in " in term or " notin " in term:
            name, _, listed = term.partition(" ")
            word, _, values = listed.partition(" ")
            if (labels.get(name) in values.strip("()").split(",")) != (word == "in"):
                return False
        elif "=" in term:
            name, _, value = term.partition("!=") if "!=" in term else term.partition("=")
            if (labels.get(name) == value.lstrip("=")) == ("!=" in term):
                return False
        elif term not in labels:
            return False
    return True


class _Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: FakeCluster

    def _parts(self) -> tuple[str, str | None, dict[str, list[str]]]:
        """Kind, name, query."""
        split = urlsplit(self.path)
        words = split.path.strip("/").split("/")
        at = words.index("namespaces") + 2 if "namespaces" in words else len(words) - 1
        kind, *rest = words[at:]
        self.cluster.requests.append(f"{self.command} {self.path}")
        return kind, rest[0] if rest else None, parse_qs(split.query)

    def _body(self) -> Object:
        """Empty for a patch in the form of a list of changes."""
        length = min(int(self.headers.get("Content-Length") or 0), _MOST_BYTES)
        found = json.loads(self.rfile.read(length) or b"{}")
        return found if isinstance(found, dict) else {}

    def _answer(self, code: int, found: Object) -> None:
        data = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _found(self, found: Object | None) -> None:
        if found is None:
            self._answer(404, {"kind": "Status", "apiVersion": "v1", "code": 404})
        else:
            self._answer(200, found)

    def do_GET(self) -> None:
        kind, name, query = self._parts()
        if self.headers.get("Upgrade"):
            self._answer(503, {"kind": "Status", "apiVersion": "v1", "code": 503})
        elif "true" in query.get("watch", []):
            self._watch(query)
        elif name is not None:
            self._found(self.cluster.get(kind, name))
        else:
            self._found(self.cluster.listed(kind, query.get("labelSelector", [""])[0]))

    def _watch(self, query: dict[str, list[str]]) -> None:
        selector = query.get("labelSelector", [""])[0]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with self.cluster.watching() as queue:
            while True:
                try:
                    event = queue.get(timeout=_LOOK_AGAIN_S)
                except Empty:
                    line = b"\n"  # Whether anybody listens still.
                else:
                    if not _fits(event["object"], selector):
                        continue
                    line = json.dumps(event).encode() + b"\n"
                try:
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    self.wfile.flush()
                except OSError:
                    self.close_connection = True
                    return

    def do_POST(self) -> None:
        kind, _, _ = self._parts()
        self._answer(201, self.cluster.create(kind, self._body()))

    def do_PATCH(self) -> None:
        kind, name, _ = self._parts()
        self._found(self.cluster.label(kind, name or "", self._body()))

    def do_PUT(self) -> None:
        self.do_PATCH()

    def do_DELETE(self) -> None:
        kind, name, query = self._parts()
        self._body()
        selector = query.get("labelSelector", [""])[0]
        chosen = [name] if name else [
            item["metadata"]["name"] for item in self.cluster.listed(kind, selector)["items"]
        ]  # fmt: skip
        for one in chosen:
            self.cluster.delete(kind, one)
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def log_message(self, *_words: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def served(cluster: FakeCluster) -> Iterator[str]:
    """Its address."""
    handler = type("Asked", (_Asked,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        cluster.end()
        server.shutdown()
        server.server_close()
