// Command promql_oracle reads expressions, a JSON list, and prints what Prometheus's own parser makes of each.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/prometheus/prometheus/promql/parser"
)

type verdict struct {
	Error   string   `json:"error,omitempty"`
	Type    string   `json:"type,omitempty"`
	Metrics []string `json:"metrics,omitempty"`
}

func read(expression string) verdict {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	found := map[string]bool{}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			found[selector.Name] = true
		}
		return nil
	})
	metrics := []string{}
	for name := range found {
		metrics = append(metrics, name)
	}
	sort.Strings(metrics)
	return verdict{Type: string(parsed.Type()), Metrics: metrics}
}

func main() {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	verdicts := []verdict{}
	for _, expression := range expressions {
		verdicts = append(verdicts, read(expression))
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		panic(err)
	}
}
