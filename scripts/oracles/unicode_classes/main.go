// Command unicode_classes prints the classes that \p{NAME} selects in Go's regular expressions, as JSON: for each name
// the first and the last code point of each range. Names that select the same class come once, with all their names.
package main

import (
	"encoding/json"
	"os"
	"regexp/syntax"
	"sort"
	"strings"
	"unicode"
)

type class struct {
	Names  []string `json:"names"`
	Ranges []rune   `json:"ranges"`
}

func main() {
	names := []string{"ASCII", "Assigned"}
	for name := range unicode.Categories {
		names = append(names, name)
	}
	for name := range unicode.CategoryAliases {
		names = append(names, name)
	}
	for name := range unicode.Scripts {
		names = append(names, name)
	}
	sort.Strings(names)
	classes := map[string]*class{}
	for _, name := range names {
		parsed, err := syntax.Parse(`\p{`+name+`}`, syntax.Perl)
		if err != nil {
			continue
		}
		key := parsed.String()
		if classes[key] == nil {
			classes[key] = &class{Ranges: parsed.Rune}
		}
		classes[key].Names = append(classes[key].Names, name)
	}
	found := []*class{}
	for _, each := range classes {
		if len(each.Ranges) > 0 {
			found = append(found, each)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		return strings.Compare(found[i].Names[0], found[j].Names[0]) < 0
	})
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}
