// Package controllers connects the core to the cluster: three reconcilers that gather facts, ask the core for one
// decision, store it and act on it. They take no decision of their own.
package controllers
