{{- define "torchserve-ts.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- /* 50 characters: the names of the other objects add to it. */}}
{{- define "torchserve-ts.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $made := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $made .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "torchserve-ts.selectorLabels" -}}
app.kubernetes.io/name: {{ include "torchserve-ts.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "torchserve-ts.labels" -}}
{{ include "torchserve-ts.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "torchserve-ts.serviceAccountName" -}}
{{- $made := .Values.serviceAccount.create | ternary (include "torchserve-ts.fullname" .) "default" -}}
{{- default $made .Values.serviceAccount.name -}}
{{- end }}

{{- define "torchserve-ts.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Of the Service that has one address per pod; Prometheus calls the job like it. */}}
{{- define "torchserve-ts.podsService" -}}
{{ include "torchserve-ts.fullname" . }}-pods
{{- end }}

{{- /* The Secret with the key file; empty without one. */}}
{{- define "torchserve-ts.keysSecret" -}}
{{- with .Values.auth -}}
{{- if eq .mode "existingSecret" }}{{ .existingSecret -}}
{{- else if has .mode (list "generated" "keys") }}{{ include "torchserve-ts.fullname" $ }}-keys
{{- end -}}
{{- end -}}
{{- end }}

{{- define "torchserve-ts.keysFile" -}}
{{ eq .Values.auth.mode "existingSecret" | ternary .Values.auth.existingSecretKey "keys.yaml" }}
{{- end }}

{{- /* What a properties file has for a value. A whole number in YAML is a float here, which would print as 1e+06. */}}
{{- define "torchserve-ts.property" -}}
{{- if kindIs "map" . }}{{ toJson . | replace "\\" "\\\\" -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . -}}
{{- else }}{{ toString . | replace "\\" "\\\\" -}}
{{- end -}}
{{- end }}

{{- /* Seconds that the server can need to stop: its drain, the grace of cancelled handlers, and 10 s for the rest. */}}
{{- define "torchserve-ts.stopSeconds" -}}
{{- $drain := .Values.config.drain_timeout | default 30 | float64 | ceil | int64 -}}
{{- $grace := divf (.Values.config.cancel_grace_ms | default 10000 | float64) 1000 | ceil | int64 -}}
{{- add $drain $grace 10 .Values.shutdown.preStopSeconds -}}
{{- end }}

{{- define "torchserve-ts.gracePeriod" -}}
{{- $needed := include "torchserve-ts.stopSeconds" . | int64 -}}
{{- $wanted := .Values.shutdown.gracePeriodSeconds | int64 -}}
{{- if and $wanted (lt $wanted $needed) -}}
{{- fail (printf "shutdown.gracePeriodSeconds must be at least %d: shutdown.preStopSeconds, config.drain_timeout, config.cancel_grace_ms and 10 s. Raise it, or lower these" $needed) -}}
{{- end -}}
{{- default $needed $wanted -}}
{{- end }}

{{- /* load_models: what is named, else the downloaded archives with their hashes as pins, else all. */}}
{{- define "torchserve-ts.loadModels" -}}
{{- $archives := list -}}
{{- range .Values.models.download -}}
{{- $archives = append $archives (printf "%s#sha256=%s" .file .sha256) -}}
{{- end -}}
{{- default "all" (join "," (default $archives .Values.models.load)) -}}
{{- end }}

{{- /* What values.schema.json cannot say in words that help. */}}
{{- define "torchserve-ts.check" -}}
{{- with .Values -}}
{{- if and (eq .models.volume.type "claimTemplate") (ne .kind "StatefulSet") -}}
{{- fail "models.volume.type=claimTemplate needs kind=StatefulSet" -}}
{{- end -}}
{{- if and .models.download (or (eq .models.volume.type "image") (and (eq .models.volume.type "existingClaim") .models.volume.readOnly)) -}}
{{- fail "models.download needs a volume that it can write to: emptyDir, claimTemplate, or existingClaim with models.volume.readOnly=false" -}}
{{- end -}}
{{- if .networkPolicy.enabled -}}
{{- if and .models.download (not .networkPolicy.egress) -}}
{{- fail "networkPolicy.egress must let models.download reach its servers" -}}
{{- end -}}
{{- if and .metrics.serviceMonitor.enabled (not .networkPolicy.metricsClients) -}}
{{- fail "networkPolicy.metricsClients must name Prometheus, because metrics.serviceMonitor.enabled=true" -}}
{{- end -}}
{{- end -}}
{{- if and .metrics.requireToken .metrics.serviceMonitor.enabled (ne .auth.mode "generated") (not .metrics.serviceMonitor.authorization.name) -}}
{{- fail "metrics.serviceMonitor.authorization must name a Secret with an API key of the scope metrics, because metrics.requireToken=true" -}}
{{- end -}}
{{- if and (eq .autoscaling.type "hpa") (not (or .autoscaling.hpa.cpuUtilization .autoscaling.hpa.memoryUtilization .autoscaling.hpa.podMetrics)) -}}
{{- fail "autoscaling.hpa must have cpuUtilization, memoryUtilization or podMetrics" -}}
{{- end -}}
{{- with .autoscaling -}}
{{- if and (eq .type "keda") (not (or .keda.queueSeconds .keda.openStreamsPerPod .keda.firstItemSeconds)) -}}
{{- fail "autoscaling.keda must have queueSeconds, openStreamsPerPod or firstItemSeconds" -}}
{{- end -}}
{{- if and (ne .type "none") (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail "autoscaling.minReplicas must not be greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
