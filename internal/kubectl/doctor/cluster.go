package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/core/deps"
	"github.com/kick-dev/kick/internal/kubectl/shape"
)

// oldestServer is the oldest version of Kubernetes that the chart installs on.
var oldestServer = version.MustParseGeneric("1.30.0")

func (p *Patient) server(context.Context) {
	info, err := p.Discovery.ServerVersion()
	if err != nil {
		p.found(Problem, "check --context, --kubeconfig and the network", "it does not answer: %v", err)
		return
	}
	serves, err := version.ParseGeneric(info.GitVersion)
	if err == nil && serves.LessThan(oldestServer) {
		p.found(Problem, "upgrade the cluster", "Kubernetes %s is older than 1.30, which KICK needs", info.GitVersion)
		return
	}
	p.ok("Kubernetes %s", info.GitVersion)
}

const crdRemedy = "install the CRDs: helm upgrade --install kick charts/kick --namespace kick-system, of the version you run"

func (p *Patient) crds(ctx context.Context) {
	served := map[string]bool{}
	list, err := p.Discovery.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		p.failed(err, "the kinds that the API server serves")
		return
	default:
		for i := range list.APIResources {
			served[list.APIResources[i].Name] = true
		}
	}
	wanted, err := shape.CRDs()
	if err != nil {
		p.failed(err, "the CRDs of this version")
		return
	}
	for i := range wanted {
		name := wanted[i].Spec.Names.Plural
		if !served[name] {
			p.found(Problem, crdRemedy, "the API server does not serve %s.%s", name, v1alpha1.GroupVersion.Group)
			continue
		}
		p.crd(ctx, &wanted[i])
	}
}

// crd compares an installed CRD with the one of this version.
func (p *Patient) crd(ctx context.Context, wanted *apiextensionsv1.CustomResourceDefinition) {
	installed := &unstructured.Unstructured{}
	installed.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := p.Client.Get(ctx, types.NamespacedName{Name: wanted.Name}, installed)
	if apierrors.IsForbidden(err) {
		p.ok("%s are served; whether they are those of this version you may not see", wanted.Spec.Names.Plural)
		return
	}
	if err != nil {
		p.failed(err, "the CRD "+wanted.Name)
		return
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(installed.Object, crd); err != nil {
		p.failed(err, "the CRD "+wanted.Name)
		return
	}
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == wanted.Spec.Versions[0].Name &&
			equality.Semantic.DeepEqual(crd.Spec.Versions[i].Schema, wanted.Spec.Versions[0].Schema) {
			p.ok("%s are served, with the schema of this plugin", wanted.Spec.Names.Plural)
			return
		}
	}
	p.found(Warning, "run the plugin of the version that is installed, or upgrade: helm upgrade brings the CRDs along",
		"%s have another schema than this plugin (%s) knows", wanted.Spec.Names.Plural, p.Version)
}

var managerLabels = client.MatchingLabels{"app.kubernetes.io/name": "kick"}

func (p *Patient) deployment(ctx context.Context) {
	var list appsv1.DeploymentList
	if err := p.Client.List(ctx, &list, client.InNamespace(p.Namespace), managerLabels); err != nil {
		p.failed(err, "the Deployment of KICK in namespace "+p.Namespace)
		return
	}
	if len(list.Items) == 0 {
		p.found(Problem, "install KICK: helm install kick charts/kick --namespace kick-system --create-namespace --wait; "+
			"if it is installed elsewhere, say so with --kick-namespace",
			"there is no KICK in namespace %s%s", p.Namespace, p.elsewhere(ctx))
		return
	}
	p.manager = &list.Items[0]
	p.arguments = map[string]string{}
	image := ""
	for _, container := range p.manager.Spec.Template.Spec.Containers {
		image = container.Image
		for _, argument := range container.Args {
			if name, value, ok := strings.Cut(strings.TrimLeft(argument, "-"), "="); ok {
				p.arguments[name] = value
			}
		}
	}
	want := int32(1)
	if p.manager.Spec.Replicas != nil {
		want = *p.manager.Spec.Replicas
	}
	if ready := p.manager.Status.ReadyReplicas; ready < want || want == 0 {
		status := Problem
		if ready > 0 {
			status = Warning
		}
		p.found(status, fmt.Sprintf("look at kubectl -n %s describe pods -l app.kubernetes.io/name=kick, and at their logs", p.Namespace),
			"%d of %d replicas are ready (%s)", ready, want, image)
		return
	}
	p.ok("%d of %d replicas are ready (%s); the plugin is %s", want, want, image, p.Version)
}

// elsewhere says where else KICK is installed, if that can be seen.
func (p *Patient) elsewhere(ctx context.Context) string {
	var list appsv1.DeploymentList
	if err := p.Client.List(ctx, &list, managerLabels); err != nil || len(list.Items) == 0 {
		return ""
	}
	return ", but one in namespace " + list.Items[0].Namespace
}

// leaseDuration is that of the manager, by the default of controller-runtime.
const leaseDuration = 15 * time.Second

func (p *Patient) leader(ctx context.Context) {
	if p.arguments["leader-elect"] == "false" {
		p.ok("there is no election: a single replica does all the work")
		return
	}
	lease := &coordinationv1.Lease{}
	err := p.Client.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: "kick"}, lease)
	remedy := fmt.Sprintf("look at the logs of KICK: kubectl -n %s logs -l app.kubernetes.io/name=kick", p.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		p.found(Problem, remedy, "nobody has ever led: there is no Lease %s/kick", p.Namespace)
	case err != nil:
		p.failed(err, "the Lease kick")
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil:
		p.found(Problem, remedy, "nobody leads, so nothing is restarted")
	default:
		holder, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		if age := p.Now().Sub(lease.Spec.RenewTime.Time); age > leaseDuration {
			p.found(Problem, remedy, "nobody leads, so nothing is restarted: %s did until %s ago", holder, age.Round(time.Second))
			return
		}
		p.ok("%s leads", holder)
	}
}

func (p *Patient) ledger(ctx context.Context) {
	snapshot, err := ledger.Read(ctx, p.Client, p.Namespace, "")
	if err != nil {
		p.failed(err, "the ledger")
	} else {
		p.ok("sources on record: %d, in ledgers: %d; changes being delivered: %d", snapshot.Size(), snapshot.Ledgers(), snapshot.Pending())
	}
	key := source.Key{Namespace: p.Namespace, Source: deps.Source{Kind: v1alpha1.Secret, Name: ledger.KeySecret}}
	metadata, err := (&source.Reader{Cache: p.Client}).Metadata(ctx, key)
	switch {
	case err != nil:
		p.failed(err, "the key of the fingerprints")
	case metadata == nil && p.manager != nil:
		p.found(Warning, "nothing, as long as KICK runs: it stores the key again; if that does not come about, see the logs",
			"the Secret %s/%s is not there", p.Namespace, ledger.KeySecret)
	case metadata != nil:
		p.ok("the key of the fingerprints is in the Secret %s/%s", p.Namespace, ledger.KeySecret)
	}
}

func (p *Patient) gitOps(ctx context.Context) {
	var list v1alpha1.KickPolicyList
	if err := p.Client.List(ctx, &list); err != nil {
		p.failed(err, "the policies of all namespaces")
		return
	}
	asked := map[v1alpha1.GitOpsProvider][]string{}
	for i := range list.Items {
		if provider := list.Items[i].Spec.GitOps.Provider; provider != "" && provider != v1alpha1.ProviderNone {
			asked[provider] = append(asked[provider], list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
	}
	if len(asked) == 0 {
		p.ok("no policy asks a GitOps tool")
		return
	}
	tools := []struct {
		provider v1alpha1.GitOpsProvider
		groups   []schema.GroupVersion
	}{
		{v1alpha1.ProviderArgoCD, []schema.GroupVersion{{Group: "argoproj.io", Version: "v1alpha1"}}},
		{v1alpha1.ProviderFlux, []schema.GroupVersion{
			{Group: "kustomize.toolkit.fluxcd.io", Version: "v1"}, {Group: "helm.toolkit.fluxcd.io", Version: "v2"},
		}},
	}
	there := 0
	for _, tool := range tools {
		served := p.serves(tool.groups)
		if served {
			there++
		}
		switch policies := asked[tool.provider]; {
		case len(policies) > 0 && served:
			p.ok("%s is served, as %d policies ask for", tool.provider, len(policies))
		case len(policies) > 0:
			p.found(Problem, fmt.Sprintf("install %s, or set spec.gitOps.provider of the policy to None", tool.provider),
				"the API server does not serve the kinds of %s, which %s asks", tool.provider, strings.Join(policies, ", "))
		}
	}
	if policies := asked[v1alpha1.ProviderAuto]; len(policies) > 0 && there == 0 {
		p.found(Problem, "install Argo CD or Flux, or set spec.gitOps.provider of the policy to None",
			"neither Argo CD nor Flux is served, and %s asks one of them", strings.Join(policies, ", "))
	} else if len(policies) > 0 {
		p.ok("%d of the tools that Auto asks are served", there)
	}
}

func (p *Patient) serves(versions []schema.GroupVersion) bool {
	for _, version := range versions {
		if _, err := p.Discovery.ServerResourcesForGroupVersion(version.String()); err == nil {
			return true
		}
	}
	return false
}
