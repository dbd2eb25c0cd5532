package main

import (
	"flag"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/controllers"
	"github.com/kick-dev/kick/internal/core/notify"
)

// notificationOptions are what the command line permits to KickNotifications.
type notificationOptions struct {
	hosts   notify.Hosts
	secrets map[types.NamespacedName]bool
}

func (o *notificationOptions) bind(flags *flag.FlagSet) {
	flags.Func("notification-hosts",
		"Hosts that KickNotifications may send to, separated by commas, such as hooks.example.com, *.example.com or "+
			"https://hooks.example.com:8443; without any, no message is sent. May be given several times.",
		func(text string) error {
			hosts, err := notify.ParseHosts(listOf(text))
			o.hosts = append(o.hosts, hosts...)
			return err
		})
	flags.Func("notification-secrets",
		"Secrets, as namespace/name and separated by commas, that KickNotifications may use without the label that marks the others. "+
			"May be given several times.",
		func(text string) error {
			for _, item := range listOf(text) {
				namespace, name, found := strings.Cut(item, "/")
				if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
					return fmt.Errorf("%q is not of the form namespace/name", item)
				}
				if o.secrets == nil {
					o.secrets = map[types.NamespacedName]bool{}
				}
				o.secrets[types.NamespacedName{Namespace: namespace, Name: name}] = true
			}
			return nil
		})
}

// permitted is what the controllers are told.
func (o notificationOptions) permitted() controllers.Notifying {
	return controllers.Notifying{Hosts: o.hosts, Secrets: o.secrets, UserAgent: "kick/" + version}
}
