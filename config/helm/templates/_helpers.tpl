{{/* Names, and what follows from the shape. */}}

{{- define "tollgate.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* ConfigMap, Secret and metrics carry the workload's name; beside an API they say whose they are. */}}
{{- define "tollgate.own" -}}
{{- include "tollgate.name" . }}{{ if ne .Values.shape "registry" }}-tollgate{{ end -}}
{{- end -}}

{{- define "tollgate.secret" -}}
{{- .Values.existingSecret | default (include "tollgate.own" .) -}}
{{- end -}}

{{/* sqlite, postgres, or none for a sidecar. */}}
{{- define "tollgate.store" -}}
{{- if eq .Values.shape "sidecar" -}}none
{{- else if eq .Values.shape "registry" -}}{{ .Values.store | default "sqlite" }}
{{- else if eq (.Values.store | default "postgres") "sqlite" -}}{{ fail "shape all-in-one needs store: postgres; several pods cannot share a file" }}
{{- else -}}postgres{{ end -}}
{{- end -}}

{{- define "tollgate.replicas" -}}
{{- $sqlite := eq (include "tollgate.store" .) "sqlite" -}}
{{- $usual := ternary 1 (ternary 3 2 (eq .Values.shape "all-in-one")) $sqlite -}}
{{- $wanted := ternary $usual .Values.replicas (kindIs "invalid" .Values.replicas) | int -}}
{{- if and $sqlite (gt $wanted 1) }}{{ fail "a registry on SQLite is one pod: one process serves a file; write replicas: 1, or store: postgres" }}{{ end -}}
{{- $wanted -}}
{{- end -}}

{{- define "tollgate.labels" -}}
app.kubernetes.io/name: {{ include "tollgate.name" . }}
{{- end -}}

{{- define "tollgate.image" -}}
{{- .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}
