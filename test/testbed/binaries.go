package testbed

import "path/filepath"

// Binaries are the executables that a testbed is made of.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kubectl           string
	Kwok              string
	Helm              string
	CertManager       string
	// CertManagerCRDs is the folder of cert-manager's CRD manifests.
	CertManagerCRDs string
}

// part is one module under components: it is built into one binary, which may
// hold several commands.
type part struct {
	// name is the folder of the module and the name of its binary.
	name string
	// target is the package to build.
	target string
	// commands are the names that the binary is called by.
	commands []string
	// manifests maps a folder name to the module and the folder in it that are
	// copied next to the binary.
	manifests map[string]moduleFolder
}

type moduleFolder struct{ module, folder string }

const crdFolder = "crds"

var parts = []part{
	{name: "kubernetes", target: ".", commands: []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl",
	}},
	{name: "kwok", target: "sigs.k8s.io/kwok/cmd/kwok", commands: []string{"kwok"}},
	{name: "helm", target: "helm.sh/helm/v4/cmd/helm", commands: []string{"helm"}},
	{
		name: "certmanager", target: ".", commands: []string{"cert-manager"},
		manifests: map[string]moduleFolder{
			crdFolder: {"github.com/cert-manager/cert-manager", "deploy/crds"},
		},
	},
}

// binariesIn names the binaries, given the folder that each part was built to.
func binariesIn(folders map[string]string) Binaries {
	kubernetes := func(command string) string { return filepath.Join(folders["kubernetes"], command) }
	return Binaries{
		Etcd:              kubernetes("etcd"),
		APIServer:         kubernetes("kube-apiserver"),
		ControllerManager: kubernetes("kube-controller-manager"),
		Scheduler:         kubernetes("kube-scheduler"),
		Kubectl:           kubernetes("kubectl"),
		Kwok:              filepath.Join(folders["kwok"], "kwok"),
		Helm:              filepath.Join(folders["helm"], "helm"),
		CertManager:       filepath.Join(folders["certmanager"], "cert-manager"),
		CertManagerCRDs:   filepath.Join(folders["certmanager"], crdFolder),
	}
}
