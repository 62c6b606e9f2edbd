// Reads lines with a schema and an object, and prints for each what the API server makes of the object: the fields that
// it does not know, what it decodes, with defaults, and the problems that it finds in that.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

type request struct {
	Schema v1.JSONSchemaProps `json:"schema"`
	Object json.RawMessage    `json:"object"`
}

type result struct {
	Unknown  []string               `json:"unknown"`
	Object   map[string]interface{} `json:"object,omitempty"`
	Problems []string               `json:"problems"`
	Error    string                 `json:"error,omitempty"`
}

func structural(props *v1.JSONSchemaProps) (*schema.Structural, validation.SchemaValidator, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, nil, err
	}
	s, err := schema.NewStructural(internal)
	if err != nil {
		return nil, nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, nil, err
	}
	s = s.DeepCopy()
	return s, validator, defaulting.PruneDefaults(s)
}

// decoded follows unstructuredSchemaCoercer and unstructuredDefaulter of the API server, but for the object's metadata.
func decoded(in request) result {
	s, validator, err := structural(&in.Schema)
	if err != nil {
		return result{Error: "schema: " + err.Error()}
	}
	object := map[string]interface{}{}
	if err := utiljson.Unmarshal(in.Object, &object); err != nil {
		return result{Error: "object: " + err.Error()}
	}
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown := append([]string{}, pruning.PruneWithOptions(object, s, true, options)...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	fault, more := objectmeta.CoerceWithOptions(nil, object, s, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fault != nil {
		return result{Error: fault.Error()}
	}
	unknown = append(unknown, more...)
	defaulting.Default(object, s)
	problems := validation.ValidateCustomResource(nil, object, validator)
	problems = append(problems, objectmeta.Validate(nil, object, s, false)...)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, s, object)...)
	texts := []string{}
	for _, problem := range problems {
		texts = append(texts, problem.Error())
	}
	sort.Strings(texts)
	return result{Unknown: unknown, Object: object, Problems: texts}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var in request
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(decoded(in)); err != nil {
			log.Fatal(err)
		}
	}
}
