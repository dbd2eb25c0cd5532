// Command manager stands in for an operator in the testbed's own tests: it
// serves a webhook and health endpoints, and tells what its world looks like.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// World is what /world answers.
type World struct {
	Args []string
	Env  []string
	User string
}

var (
	webhookPort = flag.Int("webhook-port", 0, "")
	certDir     = flag.String("webhook-cert-dir", "", "")
	healthAddr  = flag.String("health-probe-bind-address", "", "")
	broken      atomic.Bool
)

func main() {
	flag.Parse()
	log.Printf("started as %d", os.Getpid())
	http.HandleFunc("/healthz", health)
	http.HandleFunc("/break", func(http.ResponseWriter, *http.Request) { broken.Store(true) })
	http.HandleFunc("/world", world)
	http.HandleFunc("/validate", validate)
	go func() { log.Fatal(http.ListenAndServe(*healthAddr, nil)) }()
	if *webhookPort != 0 {
		go serveWebhook()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	log.Print("ended by SIGTERM")
}

// serveWebhook reads its certificate anew for each connection.
func serveWebhook() {
	server := &http.Server{
		Addr: fmt.Sprintf(":%d", *webhookPort),
		TLSConfig: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(*certDir, "tls.crt"), filepath.Join(*certDir, "tls.key"))
			return &pair, err
		}},
	}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

func health(w http.ResponseWriter, _ *http.Request) {
	if broken.Load() {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func world(w http.ResponseWriter, r *http.Request) {
	user, err := whoAmI(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(World{Args: os.Args[1:], Env: os.Environ(), User: user})
}

// whoAmI asks the API server.
func whoAmI(ctx context.Context) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// validate refuses objects that have the label deny.
func validate(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID    string                       `json:"uid"`
			Object metav1.PartialObjectMetadata `json:"object"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, deny := review.Request.Object.Labels["deny"]
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": review.APIVersion,
		"kind":       review.Kind,
		"response": map[string]any{
			"uid":     review.Request.UID,
			"allowed": !deny,
			"status":  map[string]any{"message": "denied by the fake manager"},
		},
	})
}
