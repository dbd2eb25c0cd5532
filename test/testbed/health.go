package testbed

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// probe is for health endpoints only, whose certificates are made up by the
// components.
var probe = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	DisableKeepAlives: true,
}}

// healthy returns a check that a URL answers 200.
func healthy(url string) func(context.Context) error {
	return func(ctx context.Context) error { return get(ctx, probe, url) }
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s: %s", url, response.Status, body)
	}
	return nil
}
