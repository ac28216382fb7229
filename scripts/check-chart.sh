#!/usr/bin/env bash
# The Helm chart: linted, rendered in each form, held against schemas made from Kubernetes' own sources, and played by podman,
# where it has to serve. What cannot be had here is skipped by name.
#
#   scripts/check-chart.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
program=${1:-$target/debug/linerate}
chart=deploy/helm/linerate
kubernetes=1.34.1

# The part that podman plays, in namespaces that `play` made: nothing of it, no process, network or mount, outlives them.
play() {
    local room=$1 tries address
    # Of two kinds of control groups podman takes the older one, if it sees no other.
    if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi
    mount -t tmpfs tmpfs /run
    # crun 1.8 gives the container's user whatever it has as standard input: not this machine's /dev/null.
    mknod --mode=666 /run/null c 1 3
    mount --bind /run/null /dev/null
    exec </dev/null
    ip link set lo up
    export CONTAINERS_CONF=$room/containers.conf
    podman=(podman --root "$room/storage" --runroot /run/storage --storage-driver vfs --cgroup-manager cgroupfs)
    "${podman[@]}" load --input "$room"/image/*.oci.tar >/dev/null
    "${podman[@]}" play kube "$room/play.yaml"
    for ((tries = 0; tries < 300; tries++)); do
        address=$("${podman[@]}" inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$("${podman[@]}" ps --quiet --filter name=infra)")
        if curl --silent --insecure --output "$room/got" "https://$address:8443/file"; then break; fi
        sleep 0.1
    done
    if ! cmp "$room/got" "$room/content/file"; then
        "${podman[@]}" ps --all
        "${podman[@]}" logs --tail 20 media-linerate-pod-0-linerate || true
        return 1
    fi
    # Prometheus would find it, and the probes would be answered.
    curl --silent --show-error --fail "http://$address:9443/healthz"
    curl --silent --show-error --fail "http://$address:9443/metrics" | grep '^linerate_connections_total'
    "${podman[@]}" play kube --down "$room/play.yaml" >/dev/null
    echo "podman played the rendered chart: the file came as it is"
}
if [ "${1:-}" = --play ]; then
    play "$2"
    exit
fi

status=0
helm=$(scripts/go-tool.sh helm helm.sh/helm/v3/cmd/helm v3.22.0) || status=$?
if [ "$status" = 77 ]; then
    echo "SKIPPED: Helm chart: helm cannot be had"
    exit 77
fi
room=$(mktemp --directory)
trap 'rm -rf "$room"' EXIT
mkdir "$room/rendered"
render() { "$helm" template media "$chart" --kube-version "$kubernetes" "$@"; }
cat >"$room/least.yaml" <<'END'
tls: { secretName: site }
content: { persistentVolumeClaim: { claimName: media } }
END
cat >"$room/every-node.yaml" <<'END'
kind: DaemonSet
hostNetwork: true
tls: { development: true }
content: { hostPath: { path: /srv/media, type: Directory } }
podDisruptionBudget: { enabled: false }
tolerations: [{ operator: Exists }]
END
cat >"$room/everything.yaml" <<'END'
tls: { secretName: site }
content: { nfs: { server: files.example.org, path: /media, readOnly: true } }
image: { repository: registry.example.org/linerate, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
imagePullSecrets: [{ name: registry }]
service: { type: LoadBalancer, externalTrafficPolicy: Local, annotations: { a: b } }
resources: { requests: { cpu: "1", memory: 256Mi }, limits: { memory: 1Gi } }
nodeSelector: { disk: fast }
affinity: { nodeAffinity: {} }
podAnnotations: { a: b }
podLabels: { c: d }
networkPolicy: { enabled: true, adminFrom: [{ namespaceSelector: { matchLabels: { a: b } } }] }
serviceMonitor: { enabled: true, labels: { release: prometheus } }
dashboard: { enabled: true }
nodeSetup: { enabled: true, adapters: [eth0, enp1s0f0_1.7], nodeSelector: { a: b }, tolerations: [{ operator: Exists }] }
load: { enabled: true, pods: 4 }
END
for values in least every-node everything; do
    "$helm" lint --strict --quiet --kube-version "$kubernetes" "$chart" --values "$room/$values.yaml" 2>"$room/said" ||
        { cat "$room/said" >&2; exit 1; }
    render --values "$room/$values.yaml" >"$room/rendered/$values.yaml" 2>"$room/said" || { cat "$room/said" >&2; exit 1; }
done

# A wrong value is an error that names it.
refused() {
    local word=$1
    shift
    if render "$@" >"$room/said" 2>&1; then
        echo "helm takes $*" >&2
        exit 1
    fi
    if ! grep --quiet --fixed-strings -- "$word" "$room/said"; then
        echo "helm refuses $* without naming $word:" >&2
        cat "$room/said" >&2
        exit 1
    fi
}
refused replica --values "$room/least.yaml" --set replica=3
refused kind --values "$room/least.yaml" --set kind=StatefulSet
refused 'tls.secretName is missing' --values "$room/least.yaml" --set tls.secretName=
refused 'exclude each other' --values "$room/least.yaml" --set tls.development=true
refused 'content is missing' --set tls.secretName=site
# What must hold of the pods, in words that a typing error would break.
for words in 'runAsNonRoot: true' 'readOnlyRootFilesystem: true' 'drop: [ALL]' 'automountServiceAccountToken: false' \
    'preStop: { sleep: { seconds: 5 } }' 'terminationGracePeriodSeconds: 620'; do
    grep --quiet --fixed-strings "$words" "$room/rendered/least.yaml" || { echo "the pods lack $words" >&2; exit 1; }
done
if grep --quiet -e 'privileged: true' -e hostPID "$room/rendered/least.yaml" "$room/rendered/every-node.yaml"; then
    echo "something is privileged that was not asked for" >&2
    exit 1
fi

# Schemas from Kubernetes' own description of its objects. ServiceMonitor is not Kubernetes' own.
skipped=
kubeconform=$(scripts/go-tool.sh kubeconform github.com/yannh/kubeconform/cmd/kubeconform v0.8.0) || kubeconform=
sources=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" 2>/dev/null | sed -nE 's/.*"Dir": "(.*)".*/\1/p') || sources=
if [ -n "$kubeconform" ] && [ -n "$sources" ]; then
    python3 scripts/kubernetes-schemas.py "$sources/api/openapi-spec/swagger.json" "$room/schemas" apps/v1/Deployment apps/v1/DaemonSet \
        batch/v1/Job v1/ConfigMap v1/Service policy/v1/PodDisruptionBudget networking.k8s.io/v1/NetworkPolicy
    conform=("$kubeconform" -strict -skip ServiceMonitor -schema-location "$room/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json")
    "${conform[@]}" -summary "$room/rendered" | tee "$room/said"
    grep --quiet "Valid: 18, Invalid: 0, Errors: 0, Skipped: 1$" "$room/said"
    sed 's/readinessProbe:/readinesProbe:/' "$room/rendered/least.yaml" >"$room/wrong.yaml"
    if "${conform[@]}" "$room/wrong.yaml" >"$room/said"; then
        echo "kubeconform takes a field that Kubernetes does not have" >&2
        exit 1
    fi
else
    skipped="Helm chart, held against Kubernetes' schemas: kubeconform or Kubernetes' sources cannot be had"
    echo "SKIPPED: $skipped"
fi

if ! command -v podman >/dev/null || [ "$(id -u)" != 0 ] || ! unshare --mount --net --pid --fork true 2>/dev/null; then
    echo "SKIPPED: Helm chart, played by podman: needs podman, root and namespaces"
    exit 77
fi
mkdir "$room/content" "$room/image"
head --bytes 3000000 /dev/urandom >"$room/content/file"
chmod -R a+rX "$room"
strip -o "$room/linerate" "$program"
python3 scripts/image.py --binary "$room/linerate" --output "$room/image" >/dev/null
# podman 4.3 knows no other limits than root's, takes a Secret's base64 for its content, and has the probes' curl in the image.
printf '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n' >"$room/containers.conf"
render --set replicas=1 --set tls.development=true --set probes.enabled=false --set "content.hostPath.path=$room/content" \
    --show-only templates/config.yaml --show-only templates/server.yaml >"$room/play.yaml" 2>/dev/null
timeout 300 unshare --mount --propagation private --net --pid --fork --kill-child --mount-proc "$0" --play "$room"
if [ -n "$skipped" ]; then exit 77; fi
