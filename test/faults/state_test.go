package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/ledger"
)

func ledgerOf(ctx context.Context, namespace string) (*v1alpha1.KickLedger, error) {
	object := &v1alpha1.KickLedger{}
	return object, k8s.Get(ctx, client.ObjectKey{Namespace: ownNamespace, Name: namespace}, object)
}

// editLedger changes the ledger of a namespace, whoever writes it meanwhile.
func editLedger(edit func(*v1alpha1.KickLedger)) func(context.Context, string) error {
	return func(ctx context.Context, namespace string) error {
		return poll(ctx, patience, func() error {
			object, err := ledgerOf(ctx, namespace)
			if err != nil {
				return err
			}
			edit(object)
			return k8s.Update(ctx, object)
		})
	}
}

func deleteLedger(ctx context.Context, namespace string) error {
	object, err := ledgerOf(ctx, namespace)
	return errors.Join(err, k8s.Delete(ctx, object))
}

func keySecret(ctx context.Context) (*corev1.Secret, error) {
	object := &corev1.Secret{}
	return object, k8s.Get(ctx, client.ObjectKey{Namespace: ownNamespace, Name: ledger.KeySecret}, object)
}

func deleteKey(ctx context.Context, _ string) error {
	object, err := keySecret(ctx)
	return errors.Join(err, k8s.Delete(ctx, object))
}

func rotateKey(ctx context.Context, _ string) error {
	object, err := keySecret(ctx)
	if err != nil {
		return err
	}
	if _, err := rand.Read(object.Data["key"]); err != nil {
		return err
	}
	return k8s.Update(ctx, object)
}

var stateFaults = map[string]func(ctx context.Context, namespace string) error{
	"the ledger is deleted":      deleteLedger,
	"half the ledger is deleted": editLedger(func(l *v1alpha1.KickLedger) { l.Records = l.Records[:len(l.Records)/2] }),
	"a record cannot be read":    editLedger(func(l *v1alpha1.KickLedger) { l.Records[0] = v1alpha1.SourceRecord{} }),
	"a record is of the year 2100": editLedger(func(l *v1alpha1.KickLedger) {
		l.Records[0].LastWrite.Time = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	}),
	"the encoding is raised": editLedger(func(l *v1alpha1.KickLedger) {
		for i := range l.Records {
			l.Records[i].Encoding--
		}
	}),
	"the fingerprint key is deleted": deleteKey,
	"the fingerprint key is rotated": rotateKey,
}

// Whatever is lost of KICK's memory, nothing restarts but what has changed.
func TestTheMemoryIsSpoiltWhileTheManagerIsDown(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 6)
	for name, spoil := range stateFaults {
		t.Run(name, func(t *testing.T) {
			f.check(t)
			m.Stop()
			must(t, spoil(t.Context(), f.namespace))
			nextSecond()
			f.change(t, "w5")
			since := m.LogSize()
			must(t, m.Start())
			f.check(t)
			f.change(t, "w0", "w5")
			f.check(t)
			if log := m.Logged(since); name != "a record is of the year 2100" &&
				!strings.Contains(log, "for the first time") && !strings.Contains(log, "Rebased") {
				t.Error("the log does not tell")
			}
		})
	}
}

func TestTheMemoryIsSpoiltWhileTheManagerRuns(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 6)
	for name, spoil := range stateFaults {
		t.Run(name, func(t *testing.T) {
			f.check(t)
			must(t, spoil(t.Context(), f.namespace))
			nextSecond()
			f.change(t, "w5")
			f.check(t)
			m.Kill()
			f.change(t, "w0")
			must(t, m.Start())
			f.check(t)
		})
	}
}

func TestADeletedFingerprintKeyIsRestored(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 2)
	before, err := keySecret(t.Context())
	must(t, err)
	must(t, k8s.Delete(t.Context(), before))
	eventually(t, func() error {
		after, err := keySecret(t.Context())
		if err == nil && string(after.Data["key"]) != string(before.Data["key"]) {
			return errors.New("another key")
		}
		return err
	})
	if !strings.Contains(m.Logged(0), "is restored") {
		t.Error("the log does not tell")
	}
	f.change(t, "w0")
	f.check(t)
}

func TestASpoiltFingerprintKeyIsToldAndNotUsed(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 2)
	stored, err := keySecret(t.Context())
	must(t, err)
	whole := stored.Data["key"]
	stored.Data["key"] = []byte("short")
	must(t, k8s.Update(t.Context(), stored))
	t.Cleanup(func() {
		stored.Data["key"] = whole
		if err := k8s.Update(context.Background(), stored); err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() error {
		if !strings.Contains(m.Logged(0), "must hold 32 bytes") {
			return errors.New("the log does not tell")
		}
		return nil
	})
	f.change(t, "w0")
	f.check(t)
}
