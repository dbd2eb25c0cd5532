package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"golang.org/x/sync/errgroup"

	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// workers is the number of workers of each controller.
const workers = 5

// issuing is the set of controllers that turn Certificates into Secrets.
type issuing struct {
	shared      *controller.Context
	controllers map[string]controller.Interface
}

func newIssuing(ctx context.Context, kubeconfig, namespace string) (*issuing, error) {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   apiRate,
		KubernetesAPIBurst: apiRate,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Second,
			CertificateRequestMaximumBackoffDuration: 10 * time.Second,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connect the controllers: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return nil, fmt.Errorf("build the shared context: %w", err)
	}
	all := &issuing{shared: shared, controllers: map[string]controller.Interface{}}
	for name, construct := range controller.Known() {
		if all.controllers[name], err = construct(factory); err != nil {
			return nil, fmt.Errorf("build controller %s: %w", name, err)
		}
	}
	return all, nil
}

// run starts the informers and blocks until all controllers have ended.
func (i *issuing) run(ctx context.Context) error {
	i.shared.SharedInformerFactory.Start(ctx.Done())
	i.shared.KubeSharedInformerFactory.Start(ctx.Done())
	group, ctx := errgroup.WithContext(ctx)
	for name, c := range i.controllers {
		group.Go(func() error {
			if err := c.Run(workers, ctx); err != nil {
				return fmt.Errorf("run controller %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
