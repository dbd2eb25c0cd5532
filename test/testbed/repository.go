package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// repositoryModule is the first line of the go.mod at the root of KICK's
// repository.
const repositoryModule = "module github.com/kick-dev/kick\n"

// repositoryRoot walks up from the working folder to the root of KICK's
// repository.
func repositoryRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte(repositoryModule)) {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("find the repository: the working folder is not inside KICK's repository")
		}
		folder = parent
	}
}
