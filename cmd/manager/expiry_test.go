package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheExpiryIsThatOfTheCertificateOnDisk(t *testing.T) {
	folder := t.TempDir()
	read := certificateExpiry(folder)
	if expiry, err := read(); err == nil {
		t.Errorf("a folder without a certificate: %s", expiry)
	}
	file := filepath.Join(folder, "tls.crt")
	for _, text := range []string{"", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if expiry, err := read(); err == nil {
			t.Errorf("%q: %s", text, expiry)
		}
	}
	if err := os.WriteFile(file, []byte(issue(t, "a.test").authority), 0o600); err != nil {
		t.Fatal(err)
	}
	expiry, err := read()
	if left := time.Until(expiry); err != nil || left <= 0 || left > time.Hour {
		t.Errorf("%s, %v", expiry, err)
	}
}
