// Command olm prints the findings of the validators of operator-framework/api on bundles, as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

// What `operator-sdk bundle validate` runs by default, and the suites for catalogs that read nothing but the bundle.
var validators = append(validator.Validators{
	validation.OperatorHubV2Validator,
	validation.StandardCategoriesValidator,
	validation.StandardCapabilitiesValidator,
	validation.ObjectValidator,
	validation.GoodPracticesValidator,
}, validation.DefaultBundleValidators...)

type finding struct {
	Level  string `json:"level"`
	Type   string `json:"type"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func main() {
	verdicts := [][]finding{}
	for _, folder := range os.Args[1:] {
		bundle, err := manifests.GetBundleFromDir(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		objects := []interface{}{bundle, bundle.CSV}
		for _, definition := range bundle.V1CRDs {
			objects = append(objects, definition)
		}
		for _, object := range bundle.Objects {
			objects = append(objects, object)
		}
		found := []finding{}
		for _, result := range validators.Validate(objects...) {
			for _, each := range append(result.Errors, result.Warnings...) {
				found = append(found, finding{string(each.Level), string(each.Type), each.Field, each.Detail})
			}
		}
		verdicts = append(verdicts, found)
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		panic(err)
	}
}
