"""The manifest and the image's entry point: what Kubernetes makes of them, and what Spark does.

The client library that Spark itself talks to Kubernetes with reads the manifest; then, in the long
test, a real driver asks a small server that speaks as much of Kubernetes' API for its executors,
which run here as processes, and one of them is killed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway

from pipeline.java import java_home
from tests.pipeline.fake_kubernetes import FakeCluster, served
from tests.pipeline.test_executors_die import assert_bob_lacks, logs_of

PLACE = Path(__file__).resolve().parents[2] / "packaging" / "k8s"
SPARK = Path(pyspark.__file__).parent
MODEL = "io.fabric8.kubernetes.api.model."
NO_FIELDS = {"getClass", "getAdditionalProperties"}
DRIVER_IP = "127.0.0.2"
DRIVER_POD = "report-x7k2p"
DEADLINE_S = 400


def documents() -> list[str]:
    return (PLACE / "pipeline.yaml").read_text(encoding="utf-8").split("\n---\n")


@pytest.fixture(scope="module")
def client() -> Iterator[JavaObject]:
    """Of Kubernetes, from the jars that come with Spark."""
    port, token = launch_gateway(
        classpath=f"{SPARK}/jars/*",
        jarpath=str(next((SPARK / "jars").glob("py4j-*.jar"))),
        java_path=str(java_home(os.environ) / "bin" / "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm.io.fabric8.kubernetes.client.utils.KubernetesSerialization()
    gateway.shutdown()


def strange(found: object, path: str = "") -> list[str]:
    """Fields that a kind does not have."""
    if not isinstance(found, JavaObject):
        return []
    if hasattr(found, "__iter__"):  # a list; maps in the model hold texts
        items = list(found)
        return [one for at, item in enumerate(items) for one in strange(item, f"{path}.{at}")]
    if not found.getClass().getName().startswith(MODEL):
        return []
    names = {method.getName(): method for method in found.getClass().getMethods()}
    if "getAdditionalProperties" not in names:
        return []
    told = [f"{path}.{name}" for name in found.getAdditionalProperties()]
    for name, method in names.items():
        is_field = name.startswith("get") and name not in NO_FIELDS
        if is_field and method.getParameterCount() == 0:
            told += strange(getattr(found, name)(), f"{path}.{name.removeprefix('get')}")
    return told


def test_the_manifest_is_what_the_client_of_kubernetes_reads(client: JavaObject) -> None:
    kinds: dict[tuple[str, str], Any] = {}
    for text in documents():
        found = client.unmarshal(text)
        assert not found.getClass().getName().endswith("GenericKubernetesResource"), text
        assert strange(found) == []
        kinds[found.getKind(), found.getMetadata().getName()] = json.loads(client.asJson(found))
    assert strange(client.unmarshal(documents()[-1].replace("backoffLimit", "backOffLimit"))) == [
        ".Spec.backOffLimit"
    ]
    pod = kinds["Job", "report"]["spec"]["template"]["spec"]
    assert ("ServiceAccount", pod["serviceAccountName"]) in kinds
    binding = kinds["RoleBinding", "driver"]
    assert ("Role", binding["roleRef"]["name"]) in kinds
    assert binding["subjects"][0]["name"] == pod["serviceAccountName"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert ("PersistentVolumeClaim", volumes["data"]["persistentVolumeClaim"]["claimName"]) in kinds
    assert ("ConfigMap", volumes["conf"]["configMap"]["name"]) in kinds
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    defaults = kinds["ConfigMap", "spark-defaults"]["data"]["spark-defaults.conf"]
    assert container["image"] in defaults
    assert "0.0.0.0" not in defaults + json.dumps(container)  # noqa: S104 - that it is not there


# --- a real driver and its executors --------------------------------------------------------------


def defaults_for(server: str) -> str:
    """The manifest's own, but for what is of this machine."""
    text = next(text for text in documents() if "spark-defaults.conf: |" in text)
    lines = text.partition("spark-defaults.conf: |\n")[2].splitlines()
    told = dict(line.split(None, 1) for line in lines if line.strip())
    told |= {
        "spark.master": f"k8s://{server}",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.driver.memory": "600m",
        "spark.executor.instances": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "600m",
        "spark.kubernetes.executor.apiPollingInterval": "2s",
    }
    return "".join(f"{name} {value}\n" for name, value in told.items())


@pytest.mark.long
def test_a_driver_gets_its_executors_and_outlives_one(tmp_path: Path) -> None:
    lacking = logs_of(tmp_path / "logs", 20_000)
    environment = {
        **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "JAVA_HOME": str(java_home(os.environ)),
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": sys.executable,
    }
    cluster = FakeCluster(PLACE / "entrypoint.sh", environment, tmp_path)
    ready = {"type": "Ready", "status": "True"}
    cluster.put(
        "pods",
        {
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": DRIVER_POD, "uid": "1"},
            "spec": {"containers": []}, "status": {"phase": "Running", "conditions": [ready]},
        },
    )  # fmt: skip
    out, told = tmp_path / "lake", tmp_path / "driver.log"
    printed = tmp_path / "answer.json"
    with served(cluster) as server:
        conf = tmp_path / "conf"
        conf.mkdir()
        (conf / "spark-defaults.conf").write_text(defaults_for(server), encoding="utf-8")
        pod = {"DRIVER_POD_IP": DRIVER_IP, "DRIVER_POD_NAME": DRIVER_POD}
        words = ("driver", "audit", tmp_path / "logs", "--json", "--out", out)
        with printed.open("wb") as answer, told.open("wb") as file:
            driver = subprocess.Popen(
                ["/bin/sh", PLACE / "entrypoint.sh", *words],
                env={**environment, **pod, "SPARK_CONF_DIR": str(conf)},
                cwd=tmp_path, stdout=answer, stderr=file, start_new_session=True,
            )  # fmt: skip
        try:
            until = time.monotonic() + DEADLINE_S
            while not any(out.rglob("*.parquet")):
                assert driver.poll() is None, told.read_text()
                assert time.monotonic() < until, told.read_text()
                time.sleep(0.2)
            cluster.kill_one()
            assert driver.wait(timeout=DEADLINE_S) == 1, told.read_text()
        finally:
            driver.kill()
            driver.wait()
    assert_bob_lacks(lacking, printed.read_text())
    assert len(cluster.executors) > 2, "the one that was killed was not replaced"
    for pod_asked in cluster.executors:
        (container,) = pod_asked["spec"]["containers"]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert env["SPARK_DRIVER_URL"].startswith(f"spark://CoarseGrainedScheduler@{DRIVER_IP}:")
        (owner,) = pod_asked["metadata"]["ownerReferences"]
        assert owner["name"] == DRIVER_POD
        claims = [volume.get("persistentVolumeClaim") for volume in pod_asked["spec"]["volumes"]]
        assert [claim["claimName"] for claim in claims if claim] == ["data"]
