package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// What the API server answers is for the integration tests. Here it does not answer.
func TestNobodyReadsTheMetricsWhileTheAPIServerIsAway(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	defer server.Close()
	filter, err := scrapersOnly(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the metrics were served")
	}))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", "Bearer token")
	answer := httptest.NewRecorder()
	guarded.ServeHTTP(answer, request)
	if answer.Code != http.StatusInternalServerError {
		t.Errorf("the answer is %d, want %d", answer.Code, http.StatusInternalServerError)
	}
}
