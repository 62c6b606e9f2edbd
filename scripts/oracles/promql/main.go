// Command promql reads expressions, a JSON list, and prints what Prometheus's own parser makes of each.
//
// With the argument "evaluate" it reads scrapes and queries instead, and prints what Prometheus's own engine computes.
package main

import (
	"encoding/json"
	"fmt"
	"io"
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

func verdicts(given io.Reader) (any, error) {
	var expressions []string
	if err := json.NewDecoder(given).Decode(&expressions); err != nil {
		return nil, err
	}
	found := []verdict{}
	for _, expression := range expressions {
		found = append(found, read(expression))
	}
	return found, nil
}

func main() {
	answer := verdicts
	if len(os.Args) > 1 && os.Args[1] == "evaluate" {
		answer = evaluate
	}
	found, err := answer(os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
