// Package protocol explores, exhaustively and up to a stated bound, what two replicas of KICK do that both believe to
// lead: every order of their requests to the API server, with changes of the source and crashes at every point in
// between. Each replica runs the real core (request, freshness, observation); what the controllers do around it is played
// here, one request to the API server at a time.
//
// It complements internal/core/properties, whose histories are longer and richer, and random.
package protocol
