package integration

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// yamlBlock is a block of YAML in a page.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// manifestsOf are the blocks of a page that are manifests, and not parts of one.
func manifestsOf(page string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(block[1], "apiVersion:") {
			all = append(all, block[1])
		}
	}
	return all
}

// The pages use one namespace, so it is that of these specs.
var _ = Describe("The manifests in the documentation", Serial, Ordered, func() {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	BeforeAll(func(ctx SpecContext) {
		create(ctx, shop)
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, shop))).To(Succeed()) })
	}, NodeTimeout(patience))

	DescribeTable("are taken by the API server and the webhooks", func(ctx SpecContext, page string, count int) {
		manifests := manifestsOf(page)
		Expect(len(manifests)).To(BeNumerically(">=", count), "manifests in %s", page)
		for _, text := range manifests {
			output, err := bed.Kubectl(ctx, "apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename", rawManifest(text))
			Expect(err).NotTo(HaveOccurred(), "%s\nin %s:\n%s", output, page, text)
		}
	},
		Entry("of the README", "README.md", 1, NodeTimeout(patience)),
		Entry("of the quickstart", "docs/quickstart.md", 2, NodeTimeout(patience)),
		Entry("of the cookbook", "docs/cookbook.md", 9, NodeTimeout(patience)),
		Entry("of the notifications", "docs/notifications.md", 1, NodeTimeout(patience)))

	It("are whole in the cookbook: nothing in it is left out of this test", func() {
		text, err := os.ReadFile("../../docs/cookbook.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(text), "```yaml")).To(Equal(len(manifestsOf("docs/cookbook.md"))))
	})
})
