package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// admittedFor is how long a caller is let in without another question: a token that is revoked, or a right that is taken
	// away, counts for so long.
	admittedFor = time.Minute
	// reviewTimeout bounds the two questions about a caller.
	reviewTimeout = 10 * time.Second
)

// scrapers lets those read the metrics who may: the API server is asked who the bearer of a token is (TokenReview) and whether
// that one may make the request (SubjectAccessReview). It does what filters.WithAuthenticationAndAuthorization of
// controller-runtime does, without the library of the API server under it (ADR 10).
type scrapers struct {
	tokens   authenticationclient.TokenReviewInterface
	rights   authorizationclient.SubjectAccessReviewInterface
	admitted *cache.Expiring
}

// scrapersOnly is a metricsserver.Options.FilterProvider.
func scrapersOnly(config *rest.Config, connection *http.Client) (metricsserver.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("set up the questions about tokens: %w", err)
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("set up the questions about rights: %w", err)
	}
	s := &scrapers{tokens: tokens.TokenReviews(), rights: rights.SubjectAccessReviews(), admitted: cache.NewExpiring()}
	return func(log logr.Logger, metrics http.Handler) (http.Handler, error) { return s.guard(log, metrics), nil }, nil
}

// guard serves those who may.
func (s *scrapers) guard(log logr.Logger, metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
		defer cancel()
		status, err := s.judge(ctx, r)
		switch {
		case err != nil:
			log.Error(err, "a caller of the metrics is refused, since nobody tells who it is")
			http.Error(w, "the API server could not be asked about you; the log of KICK says why", http.StatusInternalServerError)
		case status == http.StatusUnauthorized:
			http.Error(w, "who reads the metrics has to send a bearer token of this cluster", status)
		case status == http.StatusForbidden:
			http.Error(w, "you may not "+verb(r)+" "+r.URL.Path+"; the value metrics.readers of the chart grants that", status)
		default:
			metrics.ServeHTTP(w, r)
		}
	})
}

// judge returns the HTTP status that a request deserves.
func (s *scrapers) judge(ctx context.Context, r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	// No token is kept.
	question := sha256.Sum256([]byte(strings.Join([]string{verb(r), r.URL.Path, token}, "\n")))
	if _, known := s.admitted.Get(question); known {
		return http.StatusOK, nil
	}
	who := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	review, err := s.tokens.Create(ctx, who, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("ask who the bearer of a token is: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	access, err := s.rights.Create(ctx, accessOf(&review.Status.User, r), metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("ask what %s may do: %w", review.Status.User.Username, err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	s.admitted.Set(question, nil, admittedFor)
	return http.StatusOK, nil
}

// accessOf asks whether a user may make a request.
func accessOf(user *authentication.UserInfo, r *http.Request) *authorization.SubjectAccessReview {
	extra := make(map[string]authorization.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorization.ExtraValue(values)
	}
	return &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorization.NonResourceAttributes{Verb: verb(r), Path: r.URL.Path},
	}}
}

// verb is what rights call the method of a request.
func verb(r *http.Request) string { return strings.ToLower(r.Method) }
