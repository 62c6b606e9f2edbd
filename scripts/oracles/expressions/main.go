// Reads a schema, and then lines with expressions of CEL; prints for each the type of its value, or the errors of the
// type checker of the API server.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type result struct {
	Type  string `json:"type,omitempty"`
	Error string `json:"error,omitempty"`
}

func environmentFor(text []byte) (*cel.Env, error) {
	props, internal := &v1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if err := json.Unmarshal(text, props); err != nil {
		return nil, err
	}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, err
	}
	s, err := schema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	self := model.SchemaDeclType(s, false).MaybeAssignTypeName("selfType")
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", self.CelType()), cel.Variable("oldSelf", self.CelType())},
		DeclTypes:         []*apiservercel.DeclType{self},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
}

// compiled returns an empty result where the type checker itself fails.
func compiled(env *cel.Env, text string) (found result) {
	defer func() { _ = recover() }()
	if ast, issues := env.Compile(text); issues != nil {
		found.Error = issues.String()
	} else {
		found.Type = ast.OutputType().String()
	}
	return found
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	lines.Scan()
	env, err := environmentFor(lines.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(compiled(env, text)); err != nil {
			log.Fatal(err)
		}
	}
}
