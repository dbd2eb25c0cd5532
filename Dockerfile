# syntax=docker/dockerfile:1

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
WORKDIR /src

# The modules change rarely: a layer of their own keeps them cached across edits.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/build-cache \
    GOCACHE=/build-cache CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -tags grpcnotrace -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/manager ./cmd/manager

# The binary is static and carries its zone data (time/tzdata), and the service account
# brings along the CA of the API server. Receivers of messages and traces need public CAs.
FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title="kick" \
      org.opencontainers.image.description="Restarts workloads exactly once when a consumed Secret or ConfigMap changes" \
      org.opencontainers.image.source="https://github.com/kick-dev/kick" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
