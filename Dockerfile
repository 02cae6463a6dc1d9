# Tollgate as a container image: the program and Node, no shell, no package manager, nobody's password.
#
#   docker build -t tollgate .
#   docker run --read-only -v "$PWD/tollgate.yaml:/etc/tollgate/tollgate.yaml:ro" -v tollgate-data:/data -p 8402:8402 tollgate
#   docker exec CONTAINER tollgate keys create --name my-sdk --scope sdk
#
# The configuration is /etc/tollgate/tollgate.yaml. What Tollgate keeps belongs under /data, the only place it writes to;
# the default `data/` beside the configuration leads there, unless a whole folder is mounted over /etc/tollgate: then
# write /data/... in it. A file without admin.listen gets 0.0.0.0:9402 here, so that probes and Prometheus reach it.
#
# Without a file, in front of an API on this machine (one that listens on more than 127.0.0.1), on a test network:
#
#   docker run --name paywall --rm -p 8402:8402 --add-host host.docker.internal:host-gateway tollgate --listen 0.0.0.0:8402 \
#     --upstream http://host.docker.internal:3000 --route 'GET /reports/* 0.10 USD' --pay-to 0xYourAddress
#   curl -i http://localhost:8402/reports/q3          # 402, and what to pay
#   docker exec paywall tollgate keys create --name my-sdk --scope sdk
#
# No part is compiled for one machine: `docker buildx build --platform linux/amd64,linux/arm64` makes both.
# For builds that repeat to the byte, give both base images with their digests as NODE_IMAGE and RUNTIME_IMAGE.

ARG NODE_VERSION=26.10.0
ARG NODE_IMAGE=docker.io/library/node:${NODE_VERSION}-trixie-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs26-debian13:nonroot

# The program with all it needs in it: what runs takes no package along. No package's script runs.
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src ./src
RUN npm run build
# The runtime has no shell and no `env`: the program names its interpreter, and what RUN would do there is prepared here.
# Beside a thread that serves and one that writes the ledger, one helper thread of the engine is enough: with four of them
# a collection takes the core away from both.
RUN sed -i '1s|.*|#!/nodejs/bin/node --v8-pool-size=1|' dist/main.js \
  && chmod 0755 dist/main.js \
  && mkdir -p /system/usr/local/bin /system/etc/tollgate /data \
  && ln -s /app/dist/main.js /system/usr/local/bin/tollgate \
  && ln -s /data /system/etc/tollgate/data

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Tollgate" \
  org.opencontainers.image.description="A sidecar reverse proxy that makes any HTTP API paid per request (HTTP 402, x402)." \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"

# The program belongs to root and nobody may change it; /data belongs to the user that runs it.
COPY package.json LICENSE /app/
COPY --from=build /app/dist /app/dist
COPY --from=build /system/ /
COPY --from=build --chown=65532:65532 /data /data

ENV NODE_ENV=production \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  TOLLGATE_CONFIG=/etc/tollgate/tollgate.yaml \
  TOLLGATE_ADMIN_LISTEN=0.0.0.0:9402

# A number, because Kubernetes cannot tell whether a name is root.
USER 65532:65532
WORKDIR /
VOLUME ["/data"]
# proxy, registry, admin
EXPOSE 8402 8403 9402
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["tollgate", "healthcheck"]
ENTRYPOINT ["tollgate"]
CMD ["serve"]
