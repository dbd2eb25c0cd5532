package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenMount is where Pods find the token of their service account.
const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"

type tokenKey struct {
	audience string
	seconds  int64
}

type token struct {
	value string
	// renew is the time from which a new one is asked for.
	renew time.Time
}

// token returns the token of the Pod's service account, and renews it when four
// fifths of its life are over. An old token is better than none.
func (v *volumes) token(ctx context.Context, pod *corev1.Pod, projection *corev1.ServiceAccountTokenProjection) (payload, error) {
	key := tokenKey{audience: projection.Audience}
	if projection.ExpirationSeconds != nil {
		key.seconds = *projection.ExpirationSeconds
	}
	current := v.tokens[key]
	if current == nil || time.Now().After(current.renew) {
		fresh, err := v.kubelet.requestToken(ctx, pod, key)
		if err != nil && current == nil {
			return nil, err
		}
		if err == nil {
			v.tokens[key], current = fresh, fresh
		}
	}
	return payload{projection.Path: []byte(current.value)}, nil
}

func (k *Kubelet) requestToken(ctx context.Context, pod *corev1.Pod, key tokenKey) (*token, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		},
	}}
	if key.audience != "" {
		request.Spec.Audiences = []string{key.audience}
	}
	if key.seconds != 0 {
		request.Spec.ExpirationSeconds = &key.seconds
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := time.Now()
	answer, err := k.Client.CoreV1().ServiceAccounts(pod.Namespace).
		CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request token: %w", err)
	}
	life := answer.Status.ExpirationTimestamp.Sub(began)
	return &token{value: answer.Status.Token, renew: began.Add(life * 4 / 5)}, nil
}

// kubeconfig writes the file that leads a container to the API server with the
// token that is mounted into it. A Pod without such a mount gets none.
func (c *container) kubeconfig(server string) (path string, err error) {
	mount, ok := c.pathOf(tokenMount)
	if !ok {
		return "", nil
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server:               server,
		CertificateAuthority: filepath.Join(mount, "ca.crt"),
	}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(mount, "token")}
	config.Contexts["pod"] = &clientcmdapi.Context{
		Cluster: "cluster", AuthInfo: "pod", Namespace: c.worker.pod.Load().Namespace,
	}
	config.CurrentContext = "pod"
	path = filepath.Join(c.worker.dir, c.spec.Name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, os.Chmod(path, 0o600)
}
