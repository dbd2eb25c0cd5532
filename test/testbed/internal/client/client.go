// Package client runs command line clients against a testbed, with settings
// and caches of their own: a user's are neither used nor changed.
package client

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// Kubeconfig is the path of the administrator's kubeconfig of a testbed.
func Kubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig") }

// Environment is what clients of the testbed in dir need in their environment.
func Environment(dir string) []string {
	helm := filepath.Join(dir, "helm")
	return []string{
		"KUBECONFIG=" + Kubeconfig(dir),
		"KUBECACHEDIR=" + filepath.Join(dir, "kubectl-cache"),
		"HELM_CACHE_HOME=" + filepath.Join(helm, "cache"),
		"HELM_CONFIG_HOME=" + filepath.Join(helm, "config"),
		"HELM_DATA_HOME=" + filepath.Join(helm, "data"),
	}
}

// Command prepares a client for the testbed in dir.
func Command(ctx context.Context, dir, path string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.Env = append(os.Environ(), Environment(dir)...)
	return cmd
}
