// Package config carries the generated manifests, for those who compare a cluster with them or do without one.
package config

import "embed"

// CRDs are the CustomResourceDefinitions, under crd/bases.
//
//go:embed crd/bases/*.yaml
var CRDs embed.FS

// Roles are what the manager may do: a ClusterRole, and a Role in its own namespace.
//
//go:embed rbac/role.yaml
var Roles []byte
