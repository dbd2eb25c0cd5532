package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kick-dev/kick/test/testbed"
)

// scrape reads the metrics of one replica, as the administrator.
func scrape(ctx context.Context, process testbed.PodProcess) string {
	GinkgoHelper()
	status, page := askForMetrics(ctx, process, "Bearer "+bed.RESTConfig().BearerToken)
	Expect(status).To(Equal(http.StatusOK), page)
	return page
}

// askForMetrics asks one replica for its metrics with a header of authorization, and returns what it answers.
func askForMetrics(ctx context.Context, process testbed.PodProcess, authorization string) (status int, page string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", process.Ports[8443]), nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", authorization)
	// The certificate of the metrics endpoint is made by the manager itself.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(body)
}

var _ = Describe("Whoever reads the metrics", func() {
	It("has to be somebody, and to have the right", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prometheus"}}
		create(ctx, account)
		ticket := &authenticationv1.TokenRequest{}
		Expect(k8s.SubResource("token").Create(ctx, account, ticket)).To(Succeed())
		running, err := bed.Pods(kickNamespace, kickSelector)
		Expect(err).NotTo(HaveOccurred())
		process := running[0]

		for header, complaint := range map[string]string{
			"":                                    "bearer token",
			"Bearer":                              "bearer token",
			"Bearer \t":                           "bearer token",
			"Bearer " + ticket.Status.Token + "x": "bearer token",
			"Basic " + ticket.Status.Token:        "bearer token",
			ticket.Status.Token:                   "bearer token",
		} {
			status, page := askForMetrics(ctx, process, header)
			Expect(status).To(Equal(http.StatusUnauthorized), header)
			Expect(page).To(And(ContainSubstring(complaint), Not(ContainSubstring("kick_"))))
		}
		status, page := askForMetrics(ctx, process, "Bearer "+ticket.Status.Token)
		Expect(status).To(Equal(http.StatusForbidden), page)
		Expect(page).To(And(ContainSubstring("metrics.readers"), Not(ContainSubstring("kick_"))))

		reader := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: reader.ObjectMeta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
		}
		create(ctx, reader, binding)
		DeferCleanup(func(ctx SpecContext) {
			Expect(k8s.Delete(ctx, binding)).To(Succeed())
			Expect(k8s.Delete(ctx, reader)).To(Succeed())
		})
		Eventually(func(g Gomega) {
			status, page := askForMetrics(ctx, process, "Bearer "+ticket.Status.Token)
			g.Expect(status).To(Equal(http.StatusOK), page)
			g.Expect(page).To(ContainSubstring("kick_build_info"))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(patience))
})
