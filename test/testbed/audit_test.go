package testbed_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kick-dev/kick/test/testbed"
)

func TestAuditLogCountsRequestsBetweenMarks(t *testing.T) {
	ns := namespace(t)
	client, err := kubernetes.NewForConfig(shared.As("counted", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	filter := testbed.AuditFilter{
		User: "counted", Verb: "create", Group: testbed.CoreGroup, Resource: "configmaps",
		Subresource: testbed.NoSubresource, Namespace: ns,
	}
	create("one")
	awaitCount(t, filter, 1)
	filter.From = shared.Audit().Mark()
	create("two")
	create("three")
	awaitCount(t, filter, 2)

	events, err := shared.Audit().Events(filter)
	if err != nil || len(events) != 2 || events[0].Name != "two" || events[0].Code != 201 || events[0].Impersonator != "admin" {
		t.Errorf("want the events in order, got %+v, %v", events, err)
	}
	table, err := shared.Audit().Table(filter)
	want := testbed.AuditCount{User: "counted", Verb: "create", Resource: "configmaps", Count: 2}
	if err != nil || len(table) != 1 || table[0] != want {
		t.Errorf("want one row, got %+v, %v", table, err)
	}
}

func TestAuditLogLeavesOutTheControlPlane(t *testing.T) {
	table, err := shared.Audit().Table(testbed.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table {
		if row.User == "kwok" || row.User == "system:kube-scheduler" {
			t.Errorf("unexpected row: %+v", row)
		}
	}
}

func awaitCount(t *testing.T, filter testbed.AuditFilter, want int) {
	t.Helper()
	eventually(t, func() error {
		count, err := shared.Audit().Count(filter)
		if err == nil && count != want {
			err = fmt.Errorf("want %d events, got %d", want, count)
		}
		return err
	})
}
