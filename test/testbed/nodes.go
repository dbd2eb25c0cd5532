package testbed

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

//go:embed stages/*.yaml
var stageFiles embed.FS

// podRange is the range of the Pods that KWOK plays on a Node. It has to differ
// from the ranges of Services and of Pods that run as processes.
func podRange(node int) string { return fmt.Sprintf("10.%d.0.0/16", 100+node) }

// maxNodes is the number of ranges below those of the testbed itself.
const maxNodes = 140

// startNodes starts KWOK and creates the Nodes.
func (t *Testbed) startNodes(ctx context.Context) error {
	stages, err := stageDocuments(t.options.Images)
	if err != nil {
		return fmt.Errorf("render stages: %w", err)
	}
	file := filepath.Join(t.options.Dir, "stages.yaml")
	content := strings.Join(append(stages, t.options.Stages...), "\n---\n")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write stages: %w", err)
	}
	err = t.boot(ctx, Kwok, 1, func(ports []int) launch {
		return launch{
			path: t.options.Binaries.Kwok,
			args: []string{
				"--kubeconfig=" + t.kubeconfigOf(userKwok),
				"--config=" + file,
				"--manage-all-nodes=true",
				// A stage keeps the Nodes alive instead: a Lease that a killed
				// KWOK holds would stop its successor until it runs out.
				"--node-lease-duration-seconds=0",
				"--cidr=" + podRange(0),
				"--server-address=" + local(ports[0]),
			},
			ready: healthy("http://" + local(ports[0]) + "/healthz"),
		}
	})
	if err != nil {
		return err
	}
	return t.createNodes(ctx)
}

// stageDocuments renders the testbed's own stages. They leave Pods that run as
// processes alone.
func stageDocuments(images map[string]string) ([]string, error) {
	played, err := playedExpression(images)
	if err != nil {
		return nil, err
	}
	terms := strings.NewReplacer(
		"@played@", played,
		"@ready@", `.status.conditions[]? | select(.type == "Ready") | .status`,
		"@wishes@", `((.metadata.labels // {}) + (.metadata.annotations // {}))`,
		"@prefix@", specialPrefix,
	)
	entries, err := stageFiles.ReadDir("stages")
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, entry := range entries {
		content, err := stageFiles.ReadFile("stages/" + entry.Name())
		if err != nil {
			return nil, err
		}
		documents = append(documents, terms.Replace(string(content)))
	}
	return documents, nil
}

// playedExpression is a jq expression that tells whether a Pod runs as a process.
func playedExpression(images map[string]string) (string, error) {
	var repositories []string
	for repository := range images {
		repositories = append(repositories, regexp.QuoteMeta(repository))
	}
	if len(repositories) == 0 {
		return "false", nil
	}
	slices.Sort(repositories)
	pattern, err := json.Marshal("^(" + strings.Join(repositories, "|") + ")(:[^/]*)?(@.*)?$")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(".spec.containers[0].image | test(%s)", pattern), nil
}

func (t *Testbed) createNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(t.configOf(userKwok))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for i := range t.options.Nodes {
		node := newNode(i)
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Node %s: %w", node.Name, err)
		}
	}
	return nil
}

func newNode(index int) *corev1.Node {
	name := fmt.Sprintf("node-%d", index)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:       name,
				corev1.LabelOSStable:       "linux",
				corev1.LabelArchStable:     "amd64",
				corev1.LabelTopologyZone:   fmt.Sprintf("zone-%d", index%3),
				corev1.LabelTopologyRegion: "testbed",
			},
		},
		Spec:   corev1.NodeSpec{PodCIDR: podRange(index), PodCIDRs: []string{podRange(index)}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// awaitCluster waits for what a user of a cluster expects to be there.
func (t *Testbed) awaitCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(t.configOf(userKwok))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for {
		missing := t.missing(ctx, client)
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the cluster: %s: %w; see the logs in %s", missing, ctx.Err(), t.logDir())
		case <-time.After(pollInterval):
		}
	}
}

// missing names something that is not ready yet.
func (t *Testbed) missing(ctx context.Context, client kubernetes.Interface) string {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	if len(nodes.Items) < t.options.Nodes {
		return "not all Nodes are there"
	}
	for _, node := range nodes.Items {
		if !schedulable(&node) {
			return fmt.Sprintf("Node %s is not ready", node.Name)
		}
	}
	return ""
}

func schedulable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return len(node.Spec.Taints) == 0
		}
	}
	return false
}
