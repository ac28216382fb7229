{{- define "linerate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "linerate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "linerate.labels" -}}
{{ include "linerate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "linerate.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* What the schema cannot say: exactly one source of certificates, unless the configuration is the operator's own. */ -}}
{{- define "linerate.verify" -}}
{{- if and .Values.tls.secretName .Values.tls.development }}{{ fail "tls.secretName and tls.development exclude each other" }}{{ end }}
{{- if not (or .Values.tls.secretName .Values.tls.development) }}{{ fail "tls.secretName is missing: the name of a Secret of type kubernetes.io/tls (or tls.development=true, for a certificate that clients do not trust)" }}{{ end }}
{{- if not .Values.content }}{{ fail "content is missing: the volume that is served, like content.persistentVolumeClaim.claimName=media" }}{{ end }}
{{- end }}

{{- define "linerate.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "linerate.pod-security" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- /* The pod, the same for a Deployment and a DaemonSet. */ -}}
{{- define "linerate.pod" -}}
metadata:
  labels:
    {{- include "linerate.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # The server reads its configuration at start and at HUP, which nothing in the pod sends: a change makes new pods.
    checksum/config: {{ tpl .Values.config . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if .Values.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  # What runs out first ends the transfers: it has to be longer than both of its parts.
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds .Values.preStopSeconds 15 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{ include "linerate.pod-security" . | nindent 4 }}
  containers:
    - name: linerate
      image: {{ include "linerate.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/linerate/config/linerate.toml]
      ports:
        - { name: https, containerPort: {{ .Values.ports.https }} }
        - { name: admin, containerPort: {{ .Values.ports.admin }} }
      lifecycle:
        # While the cluster takes the pod out of its Services, it still takes connections. Then the runtime sends the image's
        # stop signal, QUIT: no new connections, and what is under way may end.
        preStop: { sleep: { seconds: {{ .Values.preStopSeconds }} } }
      {{- if .Values.probes.enabled }}
      startupProbe: { httpGet: { path: /healthz, port: admin }, periodSeconds: 1, failureThreshold: 120 }
      readinessProbe: { httpGet: { path: /healthz, port: admin }, periodSeconds: 5 }
      # Whether the process answers at all: /healthz also says no while it drains, which is no reason to kill it.
      livenessProbe: { tcpSocket: { port: admin }, periodSeconds: 10, failureThreshold: 6 }
      {{- end }}
      securityContext: {{ include "linerate.container-security" . | nindent 8 }}
      {{- with .Values.resources }}
      resources: {{ toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        # Folders, not single files: only a folder follows when its ConfigMap or Secret changes.
        - { name: config, mountPath: /etc/linerate/config, readOnly: true }
        {{- if .Values.tls.secretName }}
        - { name: tls, mountPath: /etc/linerate/tls, readOnly: true }
        {{- end }}
        - { name: content, mountPath: /srv, readOnly: true }
        - { name: state, mountPath: /var/lib/linerate }
  volumes:
    - name: config
      configMap: { name: {{ include "linerate.name" . }} }
    {{- if .Values.tls.secretName }}
    - name: tls
      secret: { secretName: {{ .Values.tls.secretName }}, optional: false, defaultMode: 0440 }
    {{- end }}
    - name: content {{ toYaml .Values.content | nindent 6 }}
    - name: state
      emptyDir: {}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .Values.kind "Deployment" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "linerate.selector" . | nindent 10 }}
  {{- end }}
{{- end }}
