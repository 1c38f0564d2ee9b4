{{- /* The pod template of the Deployment and of the StatefulSet. */}}
{{- define "torchserve-ts.pod" -}}
metadata:
  labels:
    {{- include "torchserve-ts.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "torchserve-ts.serviceAccountName" . }}
  automountServiceAccountToken: {{ .Values.serviceAccount.automountToken }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "torchserve-ts.gracePeriod" . }}
  securityContext: {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- $ours := dict "labelSelector" (dict "matchLabels" (include "torchserve-ts.selectorLabels" . | fromYaml)) }}
    {{- range .Values.topologySpreadConstraints }}
    - {{- hasKey . "labelSelector" | ternary . (merge (dict) . $ours) | toYaml | nindent 6 }}
    {{- end }}
  {{- end }}
  {{- if .Values.models.download }}
  initContainers: {{- include "torchserve-ts.download" . | nindent 4 }}
  {{- end }}
  containers: {{- include "torchserve-ts.container" . | nindent 4 }}
  volumes: {{- include "torchserve-ts.volumes" . | nindent 4 }}
{{- end }}

{{- define "torchserve-ts.download" -}}
- name: download
  image: {{ include "torchserve-ts.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [node, /etc/torchserve-ts/download/download.mjs, /etc/torchserve-ts/download/downloads.json, {{ .Values.models.path | quote }}]
  {{- with .Values.models.downloadAuthorization }}
  {{- if .name }}
  env:
    - name: DOWNLOAD_AUTHORIZATION
      valueFrom:
        secretKeyRef: { name: {{ .name | quote }}, key: {{ .key | quote }} }
  {{- end }}
  {{- end }}
  securityContext: {{- toYaml .Values.securityContext | nindent 4 }}
  resources: {{- toYaml .Values.resources | nindent 4 }}
  volumeMounts:
    {{- include "torchserve-ts.modelsMount" (list . false) | nindent 4 }}
    - name: download
      mountPath: /etc/torchserve-ts/download
      readOnly: true
    - name: tmp
      mountPath: /tmp
{{- end }}

{{- define "torchserve-ts.modelsMount" -}}
{{- $readOnly := index . 1 -}}
{{- with index . 0 -}}
- name: models
  mountPath: {{ .Values.models.path | quote }}
  {{- with .Values.models.volume.subPath }}
  subPath: {{ . | quote }}
  {{- end }}
  readOnly: {{ $readOnly }}
{{- end -}}
{{- end }}

{{- define "torchserve-ts.container" -}}
- name: torchserve-ts
  image: {{ include "torchserve-ts.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [--ts-config, /etc/torchserve-ts/config/config.properties]
  {{- with .Values.env }}
  env: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.envFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - { name: http, containerPort: 8080 }
    - { name: grpc, containerPort: 7070 }
    - { name: grpc-v2, containerPort: 9000 }
    - { name: metrics, containerPort: 8082 }
  {{- /* Started and alive: the metrics listener, which keeps connections in reserve, answers. */}}
  {{- range $probe := list "startup" "liveness" }}
  {{- with index $.Values.probes $probe }}
  {{- if .enabled }}
  {{ $probe }}Probe:
    {{- if $.Values.metrics.requireToken }}
    tcpSocket: { port: metrics }
    {{- else }}
    httpGet: { path: '/metrics?name[]=torchserve_ts_workers', port: metrics }
    {{- end }}
    {{- omit . "enabled" | toYaml | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- /* Ready: every model of the start serves. gRPC health asks for no token. */}}
  {{- with .Values.probes.readiness }}
  {{- if .enabled }}
  readinessProbe:
    grpc: { port: 7070 }
    {{- omit . "enabled" | toYaml | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with .Values.shutdown.preStopSeconds }}
  lifecycle:
    preStop:
      sleep: { seconds: {{ . }} }
  {{- end }}
  securityContext: {{- toYaml .Values.securityContext | nindent 4 }}
  resources: {{- toYaml .Values.resources | nindent 4 }}
  volumeMounts:
    - name: config
      mountPath: /etc/torchserve-ts/config
      readOnly: true
    {{- if include "torchserve-ts.keysSecret" . }}
    - name: keys
      mountPath: /etc/torchserve-ts/keys
      readOnly: true
    {{- end }}
    {{- if ne .Values.models.volume.type "image" }}
    {{- include "torchserve-ts.modelsMount" (list . true) | nindent 4 }}
    {{- end }}
    - name: tmp
      mountPath: /tmp
    - name: shm
      mountPath: /dev/shm
    {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{- define "torchserve-ts.volumes" -}}
- name: config
  configMap:
    name: {{ include "torchserve-ts.fullname" . }}
{{- with include "torchserve-ts.keysSecret" . }}
- name: keys
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
    {{- /* The keys themselves, which a made Secret has too, stay outside. */}}
    items: [{ key: {{ include "torchserve-ts.keysFile" $ | quote }}, path: {{ include "torchserve-ts.keysFile" $ | quote }} }]
{{- end }}
{{- if .Values.models.download }}
- name: download
  configMap:
    name: {{ include "torchserve-ts.fullname" . }}-download
{{- end }}
{{- with .Values.models.volume }}
{{- if eq .type "emptyDir" }}
- name: models
  {{- if .sizeLimit }}
  emptyDir: { sizeLimit: {{ .sizeLimit | quote }} }
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- else if eq .type "existingClaim" }}
- name: models
  persistentVolumeClaim:
    claimName: {{ .claimName | quote }}
    readOnly: {{ .readOnly }}
{{- end }}
{{- end }}
- name: tmp
  emptyDir: { sizeLimit: {{ .Values.tmp.sizeLimit | quote }} }
- name: shm
  emptyDir: { medium: Memory, sizeLimit: {{ .Values.shm.sizeLimit | quote }} }
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
