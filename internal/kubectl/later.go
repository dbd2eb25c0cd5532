package kubectl

import "github.com/spf13/cobra"

func newPreview(*connection) *cobra.Command  { return &cobra.Command{Use: "preview"} }
func newCalendar(*connection) *cobra.Command { return &cobra.Command{Use: "calendar"} }
func newTimeline(*connection) *cobra.Command { return &cobra.Command{Use: "timeline"} }
func newDoctor(*connection) *cobra.Command   { return &cobra.Command{Use: "doctor"} }
func newMigrate(*connection) *cobra.Command  { return &cobra.Command{Use: "migrate"} }
