package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kick-dev/kick/test/testbed"
)

// scrape reads the metrics of one replica, as the administrator.
func scrape(ctx context.Context, process testbed.PodProcess) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", process.Ports[8443]), nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+bed.RESTConfig().BearerToken)
	// The certificate of the metrics endpoint is made by the manager itself.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	return string(body)
}
