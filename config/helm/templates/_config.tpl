{{/* tollgate.yaml of each shape, before `config` of the values is laid over it. */}}

{{- define "tollgate.config" -}}
{{- if ne .Values.shape "registry" }}
proxy:
  listen: 0.0.0.0:8402
  upstream: http://127.0.0.1:{{ .Values.api.port }}
  undeclared_methods: pay
  timeouts: { drain_delay: 5s, drain: 25s }
receivers:
  - id: default
    network: base-sepolia
    pay_to_address: "0x..."
    facilitators: [https://x402.org/facilitator]
{{- end }}
{{- if eq .Values.shape "sidecar" }}
sync:
  registry_url: http://tollgate-registry:8403
  insecure: true
  api_key_file: /run/secrets/tollgate/api-key
  snapshot_file: /data/routes.json
{{- else }}
registry:
  listen: 0.0.0.0:8403
  {{- if eq (include "tollgate.store" .) "sqlite" }}
  store: sqlite:/data/tollgate.db
  {{- else }}
  store:
    url: postgres://tollgate@db.internal:5432/tollgate
    password_file: /run/secrets/tollgate/db-password
  {{- end }}
  jwt:
    secret_file: /run/secrets/tollgate/jwt-secret
  api_keys: []
{{- end }}
{{- if eq .Values.shape "all-in-one" }}
routes:
  - { route_pattern: /reports/*, method: GET, amount: "0.10" }
{{- end }}
charges:
  secrets_file: /run/secrets/tollgate/charge-secrets
{{- end -}}
