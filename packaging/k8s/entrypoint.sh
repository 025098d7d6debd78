#!/bin/sh
# `driver …` runs causerie-pipeline under spark-submit; `executor` is what Spark's driver asks a pod to be.
set -eu
case "$1" in
driver)
  shift
  # Executors are told the address that the driver binds to, so that has to be its pod's own.
  exec "$SPARK_HOME/bin/spark-submit" \
    --conf spark.driver.host="$DRIVER_POD_IP" --conf spark.driver.bindAddress="$DRIVER_POD_IP" \
    --conf spark.kubernetes.driver.pod.name="$DRIVER_POD_NAME" \
    "$(command -v causerie-pipeline.py)" "$@"
  ;;
executor)
  # Names as org.apache.spark.deploy.k8s sets them.
  set --
  for line in $(env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n | cut -d= -f2-); do
    set -- "$@" "$line"
  done
  exec "$JAVA_HOME/bin/java" "$@" \
    -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_EXTRA_CLASSPATH:+$SPARK_EXTRA_CLASSPATH:}$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
*)
  exec "$@"
  ;;
esac
