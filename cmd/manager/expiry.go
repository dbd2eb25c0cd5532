package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// certificateExpiry returns what tells until when the certificate in a folder is valid. It is read anew each time, so that
// it is that of the renewed one as soon as there is one.
func certificateExpiry(folder string) func() (time.Time, error) {
	return func() (time.Time, error) {
		text, err := os.ReadFile(filepath.Join(folder, "tls.crt"))
		if err != nil {
			return time.Time{}, err
		}
		block, _ := pem.Decode(text)
		if block == nil {
			return time.Time{}, errors.New("tls.crt holds no PEM")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, err
		}
		return certificate.NotAfter, nil
	}
}
